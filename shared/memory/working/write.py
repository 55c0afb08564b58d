"""Write to working memory and keep the index in step.

The index jobs are committed before Redis is written. If this process dies before Redis or the index is
written, a worker reads the entry from Redis as it is then, and makes the index agree.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from shared.conversation.sessions import namespace_queries
from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.memory.working import index_document, keys, queries
from shared.memory.working.access import Check
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
    check: Check | None = None,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
) -> WorkingEntry:
    """Write an entry under its full path and return it. It is found by keyword at once.

    `check` is done before anything is changed and again in the transaction during which Redis is written.
    Raises what it raises, errors.Invalid for bad input, and errors.LimitReached if its namespace is full.
    """
    working_memory = WorkingMemory.from_resources(resources, tenant)
    queries.check_entry(working_memory, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    jobs = await _enqueue_index_jobs(resources, working_memory, [path], check)
    async with _checked(resources, tenant, check):
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


async def delete(resources: Resources, tenant: str, path: str, check: Check | None = None) -> bool:
    """Delete an entry, and return whether there was a live one. `check` is as in `put`."""
    working_memory = WorkingMemory.from_resources(resources, tenant)
    path = keys.check_writable(path)
    jobs = await _enqueue_index_jobs(resources, working_memory, [path], check, is_deletion=True)
    async with _checked(resources, tenant, check):
        is_deleted = await queries.delete(working_memory, path)
    await _erase_responses(resources, tenant, [path])
    await resources.index_writer.write_through([], jobs)
    return is_deleted


async def clear(resources: Resources, tenant: str, prefix: str, check: Check | None = None) -> int:
    """Delete everything at and below a prefix, and return the number of deleted live entries.

    `check` is as in `put`.
    """
    working_memory = WorkingMemory.from_resources(resources, tenant)
    keys.resolve_prefix(prefix, None, write=True)
    with redis_client.failures_as_unavailable():
        infos = await queries.list_entries(working_memory, prefix)
    paths = [info.key for info in infos]
    jobs = await _enqueue_index_jobs(resources, working_memory, paths, check, is_deletion=True)
    async with _checked(resources, tenant, check):
        count = await queries.clear(working_memory, prefix)
    await _erase_responses(resources, tenant, paths)
    await resources.index_writer.write_through([], jobs)
    return count


async def _erase_responses(resources: Resources, tenant: str, paths: Sequence[str]) -> None:
    """Erase the stored contexts that name deleted entries, also one that was being stored meanwhile."""
    if not paths:
        return
    async with resources.postgres.for_tenant(tenant) as connection:
        namespaces = {keys.namespace_of(path) for path in paths}
        await namespace_queries.lock_entry_names(connection, tenant, namespaces, shared=False)
        record_ids = [index_document.record_id_of(path) for path in paths]
        await idempotency_queries.erase_responses(connection, tenant, record_ids)


@asynccontextmanager
async def _checked(resources: Resources, tenant: str, check: Check | None) -> AsyncIterator[None]:
    """Check a write and keep what was checked from changing while the block writes to Redis."""
    async with AsyncExitStack() as stack:
        if check is not None:
            await check(await stack.enter_async_context(resources.postgres.for_tenant(tenant)))
        stack.enter_context(redis_client.failures_as_unavailable())
        yield


async def _enqueue_index_jobs(
    resources: Resources,
    working_memory: WorkingMemory,
    paths: Sequence[str],
    check: Check | None = None,
    *,
    is_deletion: bool = False,
) -> list[Job]:
    # Redis sets the entry's version only when it is written. The time before that is lower, and it is higher
    # than the version of every entry that the key had: a worker that finds no entry deletes those points.
    with redis_client.failures_as_unavailable():
        version = await queries.read_time(working_memory)
    versions = {index_document.record_id_of(path): version for path in paths}
    async with resources.postgres.for_tenant(working_memory.tenant) as connection:
        if check is not None:
            await check(connection)
        if is_deletion:  # stored contexts name the entries that they listed
            await idempotency_queries.erase_responses(connection, working_memory.tenant, list(versions))
        return await index_jobs.enqueue_index_jobs(
            connection, working_memory.tenant, RecordKind.WORKING, versions, delay=WRITE_THROUGH_SECONDS
        )
