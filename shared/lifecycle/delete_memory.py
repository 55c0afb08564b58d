"""Forget entries: content, history and every copy go; a keyed digest stays, so that they don't come back.

Copies of an entry's text stand in its history, in the lines recalled with turns, in stored
answers and in cached vectors. All but the last two stores' share one transaction; the point and
the cached window follow at once or, when their store is away, through the work rows and expiry.
"""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns import window
from shared.foundation.scope import Caller
from shared.foundation.stages import Kind, Track
from shared.jobs import index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Claim
from shared.memory.longterm import history, tombstones
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Entry
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.search.index import embedding_cache


async def forget(resources: Resources, caller: Caller, entry_id: str) -> Entry | None:
    """Delete an entry for good and return what it was; None when there was none.

    Deleting an archived entry goes on to the entries that were derived from nothing else.
    """
    async with resources.postgres.tenant(caller.tenant) as connection:
        entry = await memory_queries.get(connection, caller, entry_id, lock=True)
        if entry is None:
            return None
        doomed = [entry] if entry.archived_at is None else await _with_derived(connection, entry)
        await tombstones.bury(connection, caller.tenant, doomed)
        claims, sessions = await erase(connection, caller.tenant, doomed)
    await resources.writer.write_through([], claims)
    await window.discard(resources, caller.tenant, sessions)
    return entry


async def _with_derived(connection: AsyncConnection, entry: Entry) -> list[Entry]:
    doomed = {entry.id: entry}
    while True:
        derived = await memory_queries.derived_only_from(connection, entry.tenant, list(doomed))
        fresh = [one for one in derived if one.id not in doomed]
        if not fresh:
            return list(doomed.values())
        doomed |= {one.id: one for one in fresh}


async def erase(
    connection: AsyncConnection, tenant: str, entries: Sequence[Entry]
) -> tuple[list[Claim], list[str]]:
    """Delete entries and every copy in Postgres; return the index rows and the sessions touched."""
    ids = [entry.id for entry in entries]
    if not ids:
        return [], []
    passages = [memory_document.document(entry).passage for entry in entries]
    await memory_queries.remove(connection, tenant, ids)
    await history.erase(connection, tenant, ids)
    await idempotency_queries.blank(connection, tenant, ids)
    await embedding_cache.forget(connection, tenant, passages)
    sessions = await turn_queries.erase_recalled(connection, tenant, ids)
    await job_queries.drop(connection, tenant, Kind.MEMORY, ids, Track.ENRICHMENT)
    gone = {entry.id: entry.version + 1 for entry in entries}
    return await index_jobs.enqueue_index(connection, tenant, Kind.MEMORY, gone), sessions
