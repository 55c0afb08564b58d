"""Write to the desk and keep the index in step.

The index rows are committed first: should this process die before the desk or the index hears
of the change, a worker reads the desk as it then stands and makes the index agree.
"""

import time
from collections.abc import Iterable, Sequence

from shared.foundation.stages import Kind
from shared.infra import redis as redis_client
from shared.jobs import index_jobs
from shared.jobs.job import Claim
from shared.memory.working import index_document, keys, queries
from shared.memory.working.queries import Desk
from shared.memory.working.working_entry import DeskEntry
from shared.platform.resources import Resources
from shared.search.index.writer import HEAD_START


async def put(
    resources: Resources,
    tenant: str,
    path: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
) -> DeskEntry:
    """Write an entry under its full path and return it; it is found by keyword at once."""
    desk = Desk(resources.redis, resources.settings, tenant)
    queries.check(desk, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    claims = await _announce(resources, tenant, [path])
    with redis_client.translated():
        entry = await queries.put(desk, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    whole = entry.model_copy(update={"value": value})
    await resources.writer.write_through([index_document.document(tenant, whole)], claims)
    return entry


async def delete(resources: Resources, tenant: str, path: str) -> bool:
    """Delete an entry; tell whether there was a live one."""
    desk = Desk(resources.redis, resources.settings, tenant)
    claims = await _announce(resources, tenant, [keys.check_writable(path)])
    with redis_client.translated():
        there = await queries.delete(desk, path)
    await resources.writer.write_through([], claims)
    return there


async def clear(resources: Resources, tenant: str, prefix: str) -> int:
    """Delete everything at and beneath a prefix; return how many live entries that were."""
    desk = Desk(resources.redis, resources.settings, tenant)
    keys.resolve_prefix(prefix, None, write=True)
    with redis_client.translated():
        listed = await queries.listings(desk, prefix)
        await _announce(resources, tenant, [one.key for one in listed])
        return await queries.clear(desk, prefix)


async def _announce(resources: Resources, tenant: str, paths: Sequence[str]) -> list[Claim]:
    # Not a version of the entry, which Redis's clock gives later: a number that no twin shares.
    now = time.time_ns() // 1000
    versions = {index_document.ref_of(path): now for path in paths}
    async with resources.postgres.tenant(tenant) as connection:
        return await index_jobs.enqueue_index(connection, tenant, Kind.DESK, versions, delay=HEAD_START)
