"""Compare the index with the records: find points without a record, and records without their point.

Neither can show a caller anything wrong, because hits are read again from their store. But orphan points
take places among the hits, and records without a point are not found. Each sweep checks some pages, and
the next one continues from there, so a large index takes several sweeps.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.foundation.stages import RecordKind
from shared.infra.qdrant import CollectionNotFound
from shared.jobs import index_jobs
from shared.lifecycle.kinds import KINDS
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources
from shared.search.index import collections, generations, points
from shared.search.index.generations import Generation

_PAGE_SIZE = 1000
_MAX_PAGES = 10
Point = tuple[str, str, str, int]  # point id, tenant, record id, version
# Where the last sweep of this process stopped, by generation. A new process begins with the first page.
_offsets: dict[int, Any] = {}


async def delete_expired_working_points(resources: Resources) -> int:
    """Delete the points of working-memory entries whose time to live is over, and return how many."""
    deleted_count = 0
    for generation in await _active_generations(resources):
        if generation.kind is RecordKind.WORKING:
            deleted_count += await points.remove_expired(
                resources.qdrant, generation.collection, datetime.now(UTC)
            )
    return deleted_count


async def reconcile(resources: Resources) -> tuple[int, int]:
    """Delete orphan points, and make records without their point due. Return (orphans, missing)."""
    orphan_count = missing_count = 0
    for generation in await _active_generations(resources):
        try:
            orphan_count += await _remove_orphans(resources, generation)
            if await _lacks_points(resources, generation):
                missing_count += await _enqueue_missing(resources, generation)
        except CollectionNotFound:
            continue  # deleted meanwhile; the next step that writes creates it again
    return orphan_count, missing_count


async def _active_generations(resources: Resources) -> list[Generation]:
    async with resources.postgres.across_tenants() as tx:
        return [
            generation
            for generation in await generations.list_generations(tx)
            if generation.state != "retiring"
        ]


async def _remove_orphans(resources: Resources, generation: Generation) -> int:
    orphan_count = 0
    for _ in range(_MAX_PAGES):
        offset = _offsets.get(generation.id)
        page = await points.scroll(resources.qdrant, generation.collection, offset, _PAGE_SIZE)
        orphans = await _find_orphans(resources, generation.kind, page.points)
        if orphans:
            await points.remove_ids(resources.qdrant, generation.collection, orphans)
        orphan_count += len(orphans)
        _offsets[generation.id] = page.next_offset
        if page.next_offset is None:
            break
    return orphan_count


async def _find_orphans(resources: Resources, kind: RecordKind, page: Sequence[Point]) -> list[str]:
    """Return the ids of the points whose record does not exist in the point's version."""
    orphans: list[str] = []
    for tenant in {tenant for _, tenant, _, _ in page}:
        tenant_points = [point for point in page if point[1] == tenant]
        record_ids = [record_id for _, _, record_id, _ in tenant_points]
        versions = await KINDS[kind].versions(resources, tenant, record_ids)
        orphans += [
            point_id
            for point_id, _, record_id, version in tenant_points
            if versions.get(record_id) != version
        ]
    return orphans


async def _lacks_points(resources: Resources, generation: Generation) -> bool:
    """Return whether a generation has fewer points than there are records.

    Only the numbers are compared, because reading every record is expensive.
    """
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    total = 0
    for tenant in tenants:
        total += await KINDS[generation.kind].count(resources, tenant)
    return await collections.count(resources.qdrant, generation.collection) < total


async def _enqueue_missing(resources: Resources, generation: Generation) -> int:
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    missing_count = 0
    for tenant in tenants:
        async for versions in KINDS[generation.kind].pages(resources, tenant):
            missing_count += await _enqueue_missing_of_page(resources, generation, tenant, versions)
    return missing_count


async def _enqueue_missing_of_page(
    resources: Resources, generation: Generation, tenant: str, versions: dict[str, int]
) -> int:
    record_id_by_point = {
        points.point_id(tenant, generation.kind, record_id, version): record_id
        for record_id, version in versions.items()
    }
    existing_ids = await points.existing_ids(
        resources.qdrant, generation.collection, list(record_id_by_point)
    )
    missing_versions = {
        record_id: versions[record_id]
        for point, record_id in record_id_by_point.items()
        if point not in existing_ids
    }
    if not missing_versions:
        return 0
    async with resources.postgres.for_tenant(tenant) as tx:
        jobs = await index_jobs.enqueue_index_jobs(
            tx, tenant, generation.kind, missing_versions, generation=generation.id
        )
    return len(jobs)
