"""Delete sessions with everything that belongs to them."""

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.observations import index_document as observation_document
from shared.conversation.observations import queries as observation_queries
from shared.conversation.sessions import queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session, SessionKind
from shared.conversation.state import tmp
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns import window
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.jobs import index_jobs, job
from shared.memory.working import write
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.platform.spend import queries as charge_queries
from shared.search.index import embedding_cache

log = structlog.get_logger()


async def delete_session(resources: Resources, caller: Caller, session_id: str) -> None:
    """Delete a session with its turns, observations, state and, if it is of kind `session`, working memory.

    The working memory of a patrol or a subagent stays for the next session of its name.
    Raises errors.NotFound if the caller sees no such session.
    """
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        session = await get_session(connection, resources.settings, caller, session_id)
        jobs = await delete_rows(connection, caller.tenant, [session.id])
    await resources.index_writer.write_through([], jobs)
    await drop_cached_state(resources, caller.tenant, [session.id])
    if session.kind is SessionKind.SESSION:
        await _clear_working_memory(resources, session)


async def _clear_working_memory(resources: Resources, session: Session) -> None:
    # If Redis is unavailable, the entries expire; until then nobody can take their namespace.
    try:
        await write.clear(resources, session.tenant, session.namespace)
    except errors.Unavailable as error:
        log.warning("working_memory_not_deleted", reason=str(error))


async def drop_cached_state(resources: Resources, tenant: str, session_ids: list[str]) -> None:
    """Delete windows and temporary state of deleted sessions from Redis.

    Otherwise a new session with the same id would find the old turns. An unavailable Redis is not an
    error, because these keys expire by themselves.
    """
    await window.delete(resources, tenant, session_ids)
    try:
        await tmp.drop_session_stores(resources, tenant, session_ids)
    except errors.Unavailable as error:
        log.warning("state_not_deleted", sessions=len(session_ids), reason=str(error))


async def delete_rows(connection: AsyncConnection, tenant: str, session_ids: list[str]) -> list[job.Job]:
    """Delete sessions with their records; return the index jobs that delete the records' points."""
    # The lock comes before all reads. Otherwise a writer could add a record after them, whose point would
    # stay in the index.
    await queries.lock(connection, tenant, session_ids)
    turns = await turn_queries.list_indexed(connection, tenant, session_ids)
    observations = await observation_queries.embedding_texts(connection, tenant, session_ids)
    texts = [*(text for _, text in turns.values()), *observations.values()]
    await embedding_cache.delete_cached(connection, tenant, texts)
    await idempotency_queries.erase_responses(connection, tenant, session_ids)
    await queries.remove(connection, tenant, session_ids)
    await charge_queries.detach_sessions(connection, tenant, session_ids)
    # Sorted by kind, as jobs are locked everywhere, so that two transactions can't deadlock.
    versions_by_kind = {
        RecordKind.OBSERVATION: dict.fromkeys(observations, observation_document.VERSION + 1),
        RecordKind.TURN: {record_id: version + 1 for record_id, (version, _) in turns.items()},
    }
    jobs: list[job.Job] = []
    for kind, versions in versions_by_kind.items():
        if versions:
            jobs += await index_jobs.enqueue_index_jobs(connection, tenant, kind, versions)
    return jobs
