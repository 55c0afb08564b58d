"""Write to working memory and keep the index in step.

The index jobs are committed before Redis is written. If this process dies before Redis or the index is
written, a worker reads the entry from Redis as it is then, and makes the index agree.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from shared.conversation.sessions import namespace_queries
from shared.foundation.origin import Origin, Trust
from shared.foundation.stages import RecordKind
from shared.foundation.versions import Expected
from shared.infra import redis as redis_client
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.memory.working import index_document, keys, large_values, queries, rules
from shared.memory.working.access import Check
from shared.memory.working.working_entry import WorkingEntry
from shared.memory.working.working_memory import WorkingMemory
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.search.index.writer import WRITE_THROUGH_SECONDS


async def put(  # noqa: PLR0913
    resources: Resources,
    tenant: str,
    path: str,
    value: str,
    origin: Origin,
    check: Check | None = None,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
    expected: Expected | None = None,
) -> WorkingEntry:
    """Write an entry under its full path and return it. It is found by keyword at once.

    `check` is done before anything is changed and again in the transaction during which Redis is written.
    Raises what it raises, and what `queries.put` does.
    """
    working_memory = WorkingMemory.from_resources(resources, tenant)
    settings = resources.settings
    rules.check_entry(settings, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    jobs = await _enqueue_index_jobs(resources, working_memory, [path], check)
    async with _checked(resources, tenant, check):
        entry = await queries.put(
            working_memory,
            path,
            value,
            ttl_seconds=ttl_seconds,
            category=category,
            tags=tags,
            expected=expected,
            origin=origin,
        )
    # The returned value of a large entry is its outline; the index needs the whole.
    await _index(resources, working_memory, entry.model_copy(update={"value": value}), jobs)
    return entry


async def append(  # noqa: PLR0913
    resources: Resources,
    tenant: str,
    path: str,
    text: str,
    trust: Trust,
    check: Check,
    *,
    ttl_seconds: float | None = None,
    expected: Expected | None = None,
    key: IdempotencyKey | None = None,
) -> WorkingEntry:
    """Append a text of this trust to a live entry, once per idempotency key; return the entry as it is then.

    A repeated request returns the entry as it is by now. The stored response has no text of it, because
    what is in working memory does not reach Postgres. The key is kept beside the entry too, so that a
    request whose process died before it stored its response appends once. Raises what `queries.append`
    does; `check` is as in `put`.
    """
    working_memory = WorkingMemory.from_resources(resources, tenant)
    rules.check_append(path, text, ttl_seconds=ttl_seconds)
    jobs = await _enqueue_index_jobs(resources, working_memory, [path], check)
    request_id = "" if key is None else key.request_id
    async with resources.postgres.for_tenant(tenant) as tx, idempotent(tx, key) as request:
        with redis_client.failures_as_unavailable():
            if request.stored is not None:
                entry = await queries.get(working_memory, path, full=True)
            else:
                await check(tx)
                fields: dict[str, Any] = {"ttl_seconds": ttl_seconds, "expected": expected}
                entry = await queries.append(
                    working_memory, path, text, request_id=request_id, trust=trust, **fields
                )
                record_id = index_document.record_id_of(path)
                await request.store({"version": entry.version}, record_ids=[record_id])
    await _index(resources, working_memory, entry, jobs)
    return large_values.with_outline(entry, resources.settings.working_chunk_size)


async def _index(
    resources: Resources, working_memory: WorkingMemory, whole_entry: WorkingEntry, jobs: Sequence[Job]
) -> None:
    document = index_document.document(working_memory.tenant, whole_entry)
    if not await resources.index_writer.write_through([document], jobs):
        # Another writer of the same key may have confirmed the job when its own point was written.
        jobs = await _enqueue_index_jobs(resources, working_memory, [whole_entry.key])
        await resources.index_writer.note_missing(jobs)


async def delete(
    resources: Resources,
    tenant: str,
    path: str,
    check: Check | None = None,
    *,
    expected: Expected | None = None,
) -> bool:
    """Delete an entry, and return whether there was a live one. `check` is as in `put`.

    Raises errors.PreconditionFailed for a stored version that is not expected.
    """
    working_memory = WorkingMemory.from_resources(resources, tenant)
    path = keys.check_writable(path)
    if expected is not None:  # what is erased before Redis is asked must not be erased in vain
        async with _checked(resources, tenant, check):  # and nobody learns of an entry by its version
            await queries.check_version(working_memory, path, expected)
    jobs = await _enqueue_index_jobs(resources, working_memory, [path], check, is_deletion=True)
    async with _checked(resources, tenant, check):
        is_deleted = await queries.delete(working_memory, path, expected=expected)
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
    async with resources.postgres.for_tenant(tenant) as tx:
        namespaces = {keys.namespace_of(path) for path in paths}
        await namespace_queries.lock_entry_names(tx, namespaces, shared=False)
        record_ids = [index_document.record_id_of(path) for path in paths]
        await idempotency_queries.erase_responses(tx, record_ids)


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
    async with resources.postgres.for_tenant(working_memory.tenant) as tx:
        if check is not None:
            await check(tx)
        if is_deletion:  # stored contexts name the entries that they listed
            await idempotency_queries.erase_responses(tx, list(versions))
        return await index_jobs.enqueue_index_jobs(
            tx, working_memory.tenant, RecordKind.WORKING, versions, delay=WRITE_THROUGH_SECONDS
        )
