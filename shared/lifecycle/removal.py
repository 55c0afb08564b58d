"""Remove from Redis, Qdrant and the file store what a deletion has deleted from Postgres.

A deletion writes down in its transaction what the other databases still hold (`begin`). Right after it,
the request removes as much as it can in a short time (`work_off`); a job does the rest. Nothing of it is
readable meanwhile, because every result is read from Postgres or belongs to a session that is gone.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
import uuid_utils

from shared.conversation.scratchpad import cache as scratchpad_cache
from shared.conversation.state import scratch, tmp
from shared.conversation.turns import window
from shared.foundation import errors
from shared.foundation.stages import SEARCHABLE_KINDS, RecordKind
from shared.infra.qdrant import CollectionNotFound
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.jobs.removals import Family
from shared.lifecycle import erasure_queries
from shared.memory.documents.files.store import file_store
from shared.memory.documents.stored_files import FILES
from shared.memory.working import working_memory, write
from shared.platform.resources import Resources
from shared.search.index import generations, points

REDIS, QDRANT = "redis", "qdrant"
WINDOW = Family(REDIS, window.FAMILY)
SCRATCHPAD = Family(REDIS, scratchpad_cache.FAMILY)
STATE = Family(REDIS, tmp.FAMILY)
WORKING = Family(REDIS, working_memory.FAMILY)
SCRATCH = Family(REDIS, scratch.FAMILY)
REQUEST_SECONDS = 0.5
"""How long a request removes points and keys before it leaves the rest to a job."""
JOB_DELAY_SECONDS = 5.0
"""When the job of a removal begins: by then the request that deleted has done what it could."""
_BATCH = 1000
_CACHES = frozenset({WINDOW, SCRATCHPAD})
_COUNTED = {WORKING: "working_entries", SCRATCH: "scratch_stores"}
Items = Mapping[Family, Collection[str]]
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Removal:
    """What one deletion has to remove; an erasure has the id of its receipt."""

    tenant: str
    operation_id: str


def points_of(kind: RecordKind) -> Family:
    """Return the family of a kind's points, whose items are record ids."""
    return Family(QDRANT, kind)


async def begin(tx: Transaction, items: Items, operation_id: str | None = None) -> Removal:
    """Write down what a deletion has to remove, in the transaction that deletes the rows."""
    removal = Removal(tx.tenant, operation_id or str(uuid_utils.uuid7()))
    await removals.add(tx, removal.operation_id, items, delay=JOB_DELAY_SECONDS)
    for kind in SEARCHABLE_KINDS:
        if record_ids := sorted(items.get(points_of(kind), ())):
            await removals.end_jobs(tx, kind, record_ids, delay=JOB_DELAY_SECONDS)
    return removal


async def work_off(
    resources: Resources, removal: Removal, *, time_limit: float | None = REQUEST_SECONDS
) -> errors.Unavailable | None:
    """Remove what can be removed now, for at most `time_limit` seconds.

    Return why something is left, if a database was unavailable: then nothing else is asked of it, because
    each family would wait for its time-out anew. What is left stays due.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    async with resources.postgres.for_tenant(removal.tenant) as tx:
        families = await removals.list_families(tx, removal.operation_id)
    failure: errors.Unavailable | None = None
    unavailable: set[str] = set()
    for family in families:
        if family.store in unavailable:
            continue
        try:
            await _remove_family(resources, removal, family, deadline)
        except errors.Unavailable as error:
            log.warning("removal_delayed", family=family.name, reason=str(error))
            failure = error
            unavailable.add(family.store)
    async with resources.postgres.for_tenant(removal.tenant) as tx:
        await _end_or_recheck(tx, removal)
    return failure


async def _end_or_recheck(tx: Transaction, removal: Removal) -> None:
    """End the job of a removal of which nothing is left, or make it due for the second time."""
    tenant, operation_id = removal.tenant, removal.operation_id
    if await removals.count_pending(tx, operation_id):
        return
    if await removals.has_rest(tx, operation_id):
        await removals.schedule(tx, tenant, operation_id, removals.RECHECK_SECONDS + 1)
    else:
        await removals.finish(tx, operation_id)


async def _remove_family(
    resources: Resources, removal: Removal, family: Family, deadline: float | None
) -> None:
    tenant, operation_id = removal.tenant, removal.operation_id
    while True:  # at least one batch, so that a small deletion is done when it is answered
        async with resources.postgres.for_tenant(tenant) as tx:
            items = await removals.list_items(tx, operation_id, family, _BATCH)
        if not items:
            return
        count = await _remove_items(resources, tenant, family, items)
        async with resources.postgres.for_tenant(tenant) as tx:
            # What was being added to a cached copy meanwhile is removed by the second time.
            await removals.complete(tx, operation_id, family, list(items), recheck=family in _CACHES)
            if count is not None:
                await erasure_queries.add_counts(tx, operation_id, {_COUNTED[family]: count})
        if deadline is not None and time.monotonic() >= deadline:
            return


async def _remove_items(
    resources: Resources, tenant: str, family: Family, items: Mapping[str, datetime]
) -> int | None:
    """Remove items of one family; return how many records were there, for a family in `_COUNTED`."""
    if family.store == QDRANT:
        await _remove_points(resources, tenant, RecordKind(family.name), items)
        return None
    return await _REMOVERS[family](resources, tenant, list(items))


async def _remove_points(
    resources: Resources, tenant: str, kind: RecordKind, items: Mapping[str, datetime]
) -> None:
    """Delete the points of deleted records. A record of the same id that is newer keeps its point.

    Versions are numbers from 1, or times in microseconds where an id can be used again.
    """
    versions = {record_id: int(moment.timestamp() * 1_000_000) for record_id, moment in items.items()}
    async with resources.postgres.across_tenants() as tx:
        kind_generations = await generations.list_generations(tx, kind)
    for generation in kind_generations:
        try:
            await points.remove_deleted(resources.qdrant, generation.collection, tenant, versions)
        except CollectionNotFound:
            continue  # it was dropped, and its points with it


async def _clear_namespaces(resources: Resources, tenant: str, namespaces: Sequence[str]) -> int:
    return sum([await write.clear(resources, tenant, namespace) for namespace in namespaces])


async def _remove_scratch_stores(resources: Resources, tenant: str, registries: Sequence[str]) -> int:
    return sum([await scratch.delete_registered(resources, tenant, registry) for registry in registries])


async def _delete_files(resources: Resources, tenant: str, file_ids: Sequence[str]) -> None:
    for file_id in file_ids:
        await file_store(resources).delete(tenant, file_id)


_REMOVERS: dict[Family, Callable[[Resources, str, Sequence[str]], Awaitable[int | None]]] = {
    WINDOW: window.delete,
    SCRATCHPAD: scratchpad_cache.delete,
    STATE: tmp.drop_session_stores,
    WORKING: _clear_namespaces,
    SCRATCH: _remove_scratch_stores,
    FILES: _delete_files,
}
