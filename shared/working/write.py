"""Write to the desk and keep the index in step.

The index rows are committed first: should this process die before the desk or the index hears
of the change, a worker reads the desk as it then stands and makes the index agree.
"""

import time
from collections.abc import Iterable, Sequence

from shared.clients import redis
from shared.index.writer import HEAD_START
from shared.resources import Resources
from shared.stages import Kind
from shared.work import store as work
from shared.work.store import Claim
from shared.working import document, keys, store
from shared.working.record import DeskEntry
from shared.working.store import Desk


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
    store.check(desk, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    claims = await _announce(resources, tenant, [path])
    with redis.translated():
        entry = await store.put(desk, path, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    whole = entry.model_copy(update={"value": value})
    await resources.writer.write_through([document.document(tenant, whole)], claims)
    return entry


async def delete(resources: Resources, tenant: str, path: str) -> bool:
    """Delete an entry; tell whether there was a live one."""
    desk = Desk(resources.redis, resources.settings, tenant)
    claims = await _announce(resources, tenant, [keys.check_writable(path)])
    with redis.translated():
        there = await store.delete(desk, path)
    await resources.writer.write_through([], claims)
    return there


async def clear(resources: Resources, tenant: str, prefix: str) -> int:
    """Delete everything at and beneath a prefix; return how many live entries that were."""
    desk = Desk(resources.redis, resources.settings, tenant)
    keys.resolve_prefix(prefix, None, write=True)
    with redis.translated():
        listed = await store.listings(desk, prefix)
        await _announce(resources, tenant, [one.key for one in listed])
        return await store.clear(desk, prefix)


async def _announce(resources: Resources, tenant: str, paths: Sequence[str]) -> list[Claim]:
    # Not a version of the entry, which Redis's clock gives later: a number that no twin shares.
    now = time.time_ns() // 1000
    versions = {document.ref_of(path): now for path in paths}
    async with resources.postgres.tenant(tenant) as connection:
        return await work.enqueue_index(connection, tenant, Kind.DESK, versions, delay=HEAD_START)
