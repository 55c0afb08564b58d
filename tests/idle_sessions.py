"""Let sessions be idle at once, instead of waiting."""

from sqlalchemy import func, update

from shared.conversation.sessions.table import session as session_table
from shared.infra.postgres import seconds
from tests.conftest import Gateway

_HOUR = 3600.0


async def make_idle(gateway: Gateway, *session_ids: str, idle_seconds: float = _HOUR) -> None:
    """Let the last turns of these sessions lie this long back."""
    where = (session_table.c.tenant == gateway.tenant, session_table.c.id.in_(session_ids))
    last_turn_at = func.now() - seconds(idle_seconds)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(update(session_table).where(*where).values(last_turn_at=last_turn_at))
