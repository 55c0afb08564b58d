"""Read the promotions of a session."""

from datetime import datetime

from shared.conversation.sessions.open import get_session
from shared.dreams.promotion import queries
from shared.dreams.promotion.promotion import Promotion
from shared.foundation.scope import Caller
from shared.platform.resources import Resources


async def list_promotions(
    resources: Resources, caller: Caller, session_id: str, limit: int, after: tuple[datetime, str] | None
) -> list[Promotion]:
    """Return promotions of a session, newest first, from the position (created_at, id) `after` on.

    Raises errors.NotFound for a session that the caller may not see.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
        return await queries.list_page(tx, session, limit, after)
