"""Delete memories with every copy of their text; tombstones prevent their return.

Copies are in the history, in the lines recalled with turns, in stored responses and in cached
embeddings. All of these are in Postgres and are deleted in one transaction. The point in Qdrant and the
cached window in Redis are deleted right after it. If one of these is unavailable, the point is deleted
later by its index job, and the window expires.
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
from shared.memory.longterm import history_queries, tombstones
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.update import require_writable
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.search.index import embedding_cache


async def delete_memory(resources: Resources, caller: Caller, memory_id: str) -> Memory | None:
    """Delete a memory for good and return it as it was, or None if the caller sees no such memory.

    If the memory is archived, the memories that were derived from nothing else are deleted too.
    Raises errors.Forbidden if the key may only read the memory.
    """
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        memory = await memory_queries.get(connection, caller, memory_id, lock=True)
        if memory is None:
            return None
        require_writable(caller, memory)
        memories = [memory] if memory.archived_at is None else await _with_derived(connection, memory)
        await tombstones.add(connection, caller.tenant, memories)
        jobs, session_ids = await delete_rows(connection, caller.tenant, memories)
    await resources.index_writer.write_through([], jobs)
    await window.delete(resources, caller.tenant, session_ids)
    return memory


async def _with_derived(connection: AsyncConnection, memory: Memory) -> list[Memory]:
    """Return a memory and those that were derived, in one or more steps, from nothing else."""
    by_id = {memory.id: memory}
    while True:
        derived = await memory_queries.list_derived_only_from(connection, memory.tenant, list(by_id))
        new_memories = [candidate for candidate in derived if candidate.id not in by_id]
        if not new_memories:
            return list(by_id.values())
        by_id |= {candidate.id: candidate for candidate in new_memories}


async def delete_rows(
    connection: AsyncConnection, tenant: str, memories: Sequence[Memory]
) -> tuple[list[Job], list[str]]:
    """Delete memories with every copy in Postgres.

    Return the index jobs that delete their points, and the ids of the sessions that had recalled them.
    """
    ids = [memory.id for memory in memories]
    if not ids:
        return [], []
    embedding_texts = [memory_document.document(memory).embedding_text for memory in memories]
    await memory_queries.remove(connection, tenant, ids)
    await history_queries.erase(connection, tenant, ids)
    await idempotency_queries.erase_responses(connection, tenant, ids)
    await embedding_cache.delete_cached(connection, tenant, embedding_texts)
    session_ids = await turn_queries.delete_recalled_lines(connection, tenant, ids)
    await job_queries.cancel(connection, tenant, RecordKind.MEMORY, ids, Pipeline.ENRICHMENT)
    versions = {memory.id: memory.version + 1 for memory in memories}
    jobs = await index_jobs.enqueue_index_jobs(connection, tenant, RecordKind.MEMORY, versions)
    return jobs, session_ids
