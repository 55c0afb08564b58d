"""Delete sessions with everything that hangs on them."""

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.observations import index_document as observation_document
from shared.conversation.observations import queries as observation_queries
from shared.conversation.sessions import queries
from shared.conversation.sessions.open import find
from shared.conversation.state import tmp
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns import window
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.foundation.stages import Kind
from shared.jobs import index_jobs, job
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.platform.spend import queries as charge_queries
from shared.search.index import embedding_cache

log = structlog.get_logger()


async def close(resources: Resources, caller: Caller, session_id: str) -> None:
    """Delete a session with its turns; its desk goes with its own time to live."""
    async with resources.postgres.tenant(caller.tenant) as connection:
        session = await find(connection, caller, session_id, resources.settings.window_idle)
        claims = await discard(connection, caller.tenant, [session.id])
    await resources.writer.write_through([], claims)
    await drop_cached(resources, caller.tenant, [session.id])


async def drop_cached(resources: Resources, tenant: str, session_ids: list[str]) -> None:
    """Drop what Redis holds of deleted sessions: an id that is used again must not find its old turns.

    Redis being away is no error: what is there goes when its time is over.
    """
    await window.discard(resources, tenant, session_ids)
    try:
        await tmp.drop_of_sessions(resources, tenant, session_ids)
    except errors.Unavailable as error:
        log.warning("tmp_not_dropped", sessions=len(session_ids), reason=str(error))


async def discard(connection: AsyncConnection, tenant: str, session_ids: list[str]) -> list[job.Claim]:
    """Delete sessions with what they hold; return the index rows that take their points away."""
    # Before anything is read: what a writer adds meanwhile would go with its row but stay in the index.
    await queries.hold(connection, tenant, session_ids)
    turns = await turn_queries.passages_of(connection, tenant, session_ids)
    observed = await observation_queries.passages_of(connection, tenant, session_ids)
    await embedding_cache.forget(connection, tenant, [*turns.values(), *observed.values()])
    await idempotency_queries.blank(connection, tenant, session_ids)
    await queries.remove(connection, tenant, session_ids)
    await charge_queries.end_sessions(connection, tenant, session_ids)
    # In the order of the kinds' names, in which work rows are held everywhere.
    gone = {
        Kind.OBSERVATION: dict.fromkeys(observed, observation_document.VERSION + 1),
        Kind.TURN: dict.fromkeys(turns, turn_queries.VERSION + 1),
    }
    claims = [
        await index_jobs.enqueue_index(connection, tenant, kind, refs) for kind, refs in gone.items() if refs
    ]
    return [claim for held in claims for claim in held]
