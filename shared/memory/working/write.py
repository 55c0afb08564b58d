"""Write to working memory and keep the index in step.

The index jobs are committed before Redis is written. If this process dies before Redis or the index is
written, a worker reads the entry from Redis as it is then, and makes the index agree.
"""

from collections.abc import Iterable, Sequence

from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.memory.working import index_document, keys, queries
from shared.memory.working.queries import WorkingMemory
from shared.memory.working.working_entry import WorkingEntry
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.search.index.writer import WRITE_THROUGH_SECONDS


async def put(
    resources: Resources,
    tenant: str,
    path: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
) -> WorkingEntry:
    """Write an entry under its full path and return it. It is found by keyword at once.

    Raises errors.Invalid for bad input, and errors.LimitReached if its namespace is full.
    """
    working_memory = WorkingMemory.from_resources(resources, tenant)
    queries.check_entry(working_memory, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    jobs = await _enqueue_index_jobs(resources, working_memory, [path])
    with redis_client.failures_as_unavailable():
        entry = await queries.put(
            working_memory, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags
        )
    # The returned value of a large entry is its outline; the index needs the whole.
    whole_entry = entry.model_copy(update={"value": value})
    document = index_document.document(tenant, whole_entry)
    if not await resources.index_writer.write_through([document], jobs):
        # Another writer of the same key may have confirmed the job when its own point was written.
        await _enqueue_index_jobs(resources, working_memory, [path])
    return entry


async def delete(resources: Resources, tenant: str, path: str) -> bool:
    """Delete an entry, and return whether there was a live one."""
    working_memory = WorkingMemory.from_resources(resources, tenant)
    path = keys.check_writable(path)
    jobs = await _enqueue_index_jobs(resources, working_memory, [path], is_deletion=True)
    with redis_client.failures_as_unavailable():
        is_deleted = await queries.delete(working_memory, path)
    await resources.index_writer.write_through([], jobs)
    return is_deleted


async def clear(resources: Resources, tenant: str, prefix: str) -> int:
    """Delete everything at and below a prefix, and return the number of deleted live entries."""
    working_memory = WorkingMemory.from_resources(resources, tenant)
    keys.resolve_prefix(prefix, None, write=True)
    with redis_client.failures_as_unavailable():
        infos = await queries.list_entries(working_memory, prefix)
        paths = [info.key for info in infos]
        jobs = await _enqueue_index_jobs(resources, working_memory, paths, is_deletion=True)
        count = await queries.clear(working_memory, prefix)
    await resources.index_writer.write_through([], jobs)
    return count


async def _enqueue_index_jobs(
    resources: Resources, working_memory: WorkingMemory, paths: Sequence[str], *, is_deletion: bool = False
) -> list[Job]:
    # Redis sets the entry's version only when it is written. The time before that is lower, and it is higher
    # than the version of every entry that the key had: a worker that finds no entry deletes those points.
    with redis_client.failures_as_unavailable():
        version = await queries.read_time(working_memory)
    versions = {index_document.record_id_of(path): version for path in paths}
    async with resources.postgres.for_tenant(working_memory.tenant) as connection:
        if is_deletion:  # stored contexts name the entries that they listed
            await idempotency_queries.erase_responses(connection, working_memory.tenant, list(versions))
        return await index_jobs.enqueue_index_jobs(
            connection, working_memory.tenant, RecordKind.WORKING, versions, delay=WRITE_THROUGH_SECONDS
        )
