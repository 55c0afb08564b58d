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
from shared.foundation.stages import Pipeline, RecordKind
from shared.jobs import index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.longterm import history, tombstones
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.search.index import embedding_cache


async def delete_memory(resources: Resources, caller: Caller, entry_id: str) -> Memory | None:
    """Delete an entry for good and return what it was; None when there was none.

    Deleting an archived entry goes on to the entries that were derived from nothing else.
    """
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        entry = await memory_queries.get(connection, caller, entry_id, lock=True)
        if entry is None:
            return None
        doomed = [entry] if entry.archived_at is None else await _with_derived(connection, entry)
        await tombstones.add(connection, caller.tenant, doomed)
        claims, sessions = await delete_rows(connection, caller.tenant, doomed)
    await resources.index_writer.write_through([], claims)
    await window.delete(resources, caller.tenant, sessions)
    return entry


async def _with_derived(connection: AsyncConnection, entry: Memory) -> list[Memory]:
    doomed = {entry.id: entry}
    while True:
        derived = await memory_queries.derived_only_from(connection, entry.tenant, list(doomed))
        fresh = [one for one in derived if one.id not in doomed]
        if not fresh:
            return list(doomed.values())
        doomed |= {one.id: one for one in fresh}


async def delete_rows(
    connection: AsyncConnection, tenant: str, entries: Sequence[Memory]
) -> tuple[list[Job], list[str]]:
    """Delete entries and every copy in Postgres; return the index rows and the sessions touched."""
    ids = [entry.id for entry in entries]
    if not ids:
        return [], []
    passages = [memory_document.document(entry).embedding_text for entry in entries]
    await memory_queries.remove(connection, tenant, ids)
    await history.erase(connection, tenant, ids)
    await idempotency_queries.erase_responses(connection, tenant, ids)
    await embedding_cache.delete_cached(connection, tenant, passages)
    sessions = await turn_queries.delete_recalled_lines(connection, tenant, ids)
    await job_queries.cancel(connection, tenant, RecordKind.MEMORY, ids, Pipeline.ENRICHMENT)
    gone = {entry.id: entry.version + 1 for entry in entries}
    return await index_jobs.enqueue_index_jobs(connection, tenant, RecordKind.MEMORY, gone), sessions
