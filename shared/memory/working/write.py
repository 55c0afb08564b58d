"""Write to the desk and keep the index in step.

The index rows are committed first: should this process die before the desk or the index hears
of the change, a worker reads the desk as it then stands and makes the index agree.
"""

import time
from collections.abc import Iterable, Sequence

from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.memory.working import index_document, keys, queries
from shared.memory.working.queries import WorkingMemory
from shared.memory.working.working_entry import WorkingEntry
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
    """Write an entry under its full path and return it; it is found by keyword at once."""
    desk = WorkingMemory(resources.redis, resources.settings, tenant)
    queries.check(desk, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    claims = await _announce(resources, tenant, [path])
    with redis_client.failures_as_unavailable():
        entry = await queries.put(desk, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    whole = entry.model_copy(update={"value": value})
    await resources.index_writer.write_through([index_document.document(tenant, whole)], claims)
    return entry


async def delete(resources: Resources, tenant: str, path: str) -> bool:
    """Delete an entry; tell whether there was a live one."""
    desk = WorkingMemory(resources.redis, resources.settings, tenant)
    claims = await _announce(resources, tenant, [keys.check_writable(path)])
    with redis_client.failures_as_unavailable():
        there = await queries.delete(desk, path)
    await resources.index_writer.write_through([], claims)
    return there


async def clear(resources: Resources, tenant: str, prefix: str) -> int:
    """Delete everything at and beneath a prefix; return how many live entries that were."""
    desk = WorkingMemory(resources.redis, resources.settings, tenant)
    keys.resolve_prefix(prefix, None, write=True)
    with redis_client.failures_as_unavailable():
        listed = await queries.list_entries(desk, prefix)
        await _announce(resources, tenant, [one.key for one in listed])
        return await queries.clear(desk, prefix)


async def _announce(resources: Resources, tenant: str, paths: Sequence[str]) -> list[Job]:
    # Not a version of the entry, which Redis's clock gives later: a number that no twin shares.
    now = time.time_ns() // 1000
    versions = {index_document.record_id_of(path): now for path in paths}
    async with resources.postgres.for_tenant(tenant) as connection:
        return await index_jobs.enqueue_index_jobs(
            connection, tenant, RecordKind.WORKING, versions, delay=WRITE_THROUGH_SECONDS
        )
