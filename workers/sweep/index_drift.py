"""Compare the index with the records: points without a record, records without their point.

Neither can show anything wrong (hits are read again), but orphans take places among the hits
and missing points are not found. Each sweep looks at some pages and the next goes on from
there, so a large index is gone through over several sweeps.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.conversation.observations import queries as observation_queries
from shared.conversation.turns import queries as turn_queries
from shared.foundation.stages import RecordKind
from shared.infra.qdrant import CollectionNotFound
from shared.jobs import index_jobs
from shared.lifecycle.reindex.backfill import count as record_count
from shared.lifecycle.reindex.backfill import versions as record_versions
from shared.memory.longterm import maintenance_queries
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources
from shared.search.index import collections, generations, points
from shared.search.index.generations import Generation

_PAGE = 1000
_PAGES = 10
Point = tuple[str, str, str, int]
_VERSIONS = {
    RecordKind.MEMORY: maintenance_queries.versions,
    RecordKind.TURN: turn_queries.versions,
    RecordKind.OBSERVATION: observation_queries.versions,
}
# Where the last sweep of this process stopped, by generation. Lost with the process: no harm.
_offsets: dict[int, Any] = {}


async def delete_expired_working_points(resources: Resources) -> int:
    """Delete points of desk entries whose time is over."""
    gone = 0
    for generation in await _generations(resources):
        if generation.kind is RecordKind.WORKING:
            gone += await points.remove_expired(resources.qdrant, generation.collection, datetime.now(UTC))
    return gone


async def reconcile(resources: Resources) -> tuple[int, int]:
    """Remove orphan points and make records without their point due; return (orphans, missing)."""
    orphans = missing = 0
    for generation in await _generations(resources):
        try:
            orphans += await _remove_orphans(resources, generation)
            if await _lacks_points(resources, generation):
                missing += await _announce_missing(resources, generation)
        except CollectionNotFound:
            continue  # dropped meanwhile, or made anew by the next step that writes
    return orphans, missing


async def _generations(resources: Resources) -> list[Generation]:
    async with resources.postgres.across_tenants() as connection:
        return [g for g in await generations.list_generations(connection) if g.state != "retiring"]


async def _remove_orphans(resources: Resources, generation: Generation) -> int:
    if generation.kind is RecordKind.WORKING:
        return 0  # they leave by their own time
    gone = 0
    for _ in range(_PAGES):
        page = await points.scroll(
            resources.qdrant, generation.collection, _offsets.get(generation.id), _PAGE
        )
        orphans = await _orphans(resources, generation.kind, page.points)
        if orphans:
            await points.remove_ids(resources.qdrant, generation.collection, orphans)
        gone += len(orphans)
        _offsets[generation.id] = page.next_offset
        if page.next_offset is None:
            break
    return gone


async def _orphans(resources: Resources, kind: RecordKind, found: Sequence[Point]) -> list[str]:
    orphans: list[str] = []
    for tenant in {tenant for _, tenant, _, _ in found}:
        mine = [(point, record_id, version) for point, owner, record_id, version in found if owner == tenant]
        async with resources.postgres.for_tenant(tenant) as connection:
            record_ids = [ref for _, ref, _ in mine]
            current = await _VERSIONS[kind](connection, tenant, record_ids)
        orphans += [point for point, ref, version in mine if current.get(ref) != version]
    return orphans


async def _lacks_points(resources: Resources, generation: Generation) -> bool:
    """Compare the numbers first: going through every record is for when they differ."""
    async with resources.postgres.across_tenants() as connection:
        tenants = await auth_queries.list_tenants(connection)
    records = 0
    for tenant in tenants:
        records += await record_count(resources, generation.kind, tenant)
    return await collections.count(resources.qdrant, generation.collection) < records


async def _announce_missing(resources: Resources, generation: Generation) -> int:
    async with resources.postgres.across_tenants() as connection:
        tenants = await auth_queries.list_tenants(connection)
    missing = 0
    for tenant in tenants:
        async for page in record_versions(resources, generation.kind, tenant):
            missing += await _announce(resources, generation, tenant, page)
    return missing


async def _announce(
    resources: Resources, generation: Generation, tenant: str, versions: dict[str, int]
) -> int:
    ids = {
        points.point_id(tenant, generation.kind, record_id, version): record_id
        for record_id, version in versions.items()
    }
    there = await points.existing_ids(resources.qdrant, generation.collection, list(ids))
    lacking = {ref: versions[ref] for point, ref in ids.items() if point not in there}
    if not lacking:
        return 0
    async with resources.postgres.for_tenant(tenant) as connection:
        claims = await index_jobs.enqueue_index_jobs(
            connection, tenant, generation.kind, lacking, generation=generation.id
        )
    return len(claims)
