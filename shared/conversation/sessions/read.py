"""Read sessions in a transaction of their own."""

from datetime import datetime

from shared.conversation.sessions import queries
from shared.conversation.sessions.filters import SessionFilters
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.foundation.scope import Caller
from shared.platform.resources import Resources


async def read_session(resources: Resources, caller: Caller, session_id: str) -> Session:
    """Return a session; raise errors.NotFound if there is none that the caller may see."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await get_session(tx, resources.settings, caller, session_id)


async def list_sessions(
    resources: Resources,
    caller: Caller,
    filters: SessionFilters,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[Session]:
    """Return sessions that the caller may see, newest first.

    `after` is the (created_at, id) of the last session of the previous page.
    """
    window_ttl = resources.settings.window_ttl
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await queries.list_page(tx, caller, window_ttl, limit, after, filters)
