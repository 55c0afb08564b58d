"""Read a session's conversation."""

from shared import errors
from shared.conversation import window
from shared.conversation.record import Turn
from shared.resources import Resources
from shared.scope import Caller
from shared.sessions import open as sessions


async def last_turns(resources: Resources, caller: Caller, session_id: str, count: int) -> list[Turn]:
    """Return the window of a session: its last turns, none when it has lain idle too long."""
    settings = resources.settings
    async with resources.postgres.tenant(caller.tenant) as connection:
        session = await sessions.find(connection, caller, session_id, settings.window_idle)
    count = min(count, settings.window_retain)
    try:
        held = await window.cached(resources, session.tenant, session.id, count)
    except errors.Unavailable:
        held = None
    return await window.replay(resources, session, count, held)
