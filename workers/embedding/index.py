"""Make the index agree with records: a point for the version that stands, none for what is gone.

The same for a record that is new, changed, archived or deleted: look what it is now, and write
that. So it does not matter how often or in what order rows are worked.
"""

import asyncio
from collections.abc import Sequence

from shared.foundation import errors, stages
from shared.foundation.stages import INDEX
from shared.infra.qdrant import CollectionNotFound
from shared.jobs import counters as fleet_counters
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.resources import Resources
from shared.search.index import generations, points
from shared.search.index.generations import Generation
from shared.search.index.points import IndexDocument
from workers.embedding import documents
from workers.runtime import drain as job_drain


async def index_batch(resources: Resources, claims: Sequence[Job]) -> None:
    """Write what is due, generation by generation."""
    async with resources.postgres.across_tenants() as connection:
        known = {generation.id: generation for generation in await generations.list_generations(connection)}
    held: dict[int, list[Job]] = {}
    for claim in claims:
        held.setdefault(claim.generation, []).append(claim)
    for number, mine in held.items():
        await _index(resources, known.get(number), mine)


async def _index(resources: Resources, generation: Generation | None, claims: list[Job]) -> None:
    try:
        if generation is not None:
            await _write(resources, generation, claims)
    except CollectionNotFound as lost:
        # Qdrant is new or was emptied, so everything else is lost too: make it, and all of it due.
        await job_drain.reschedule(resources, INDEX, claims, errors.Unavailable("qdrant", str(lost)))
        await rebuild_index.prepare_index(resources)
        return
    except errors.Unavailable as away:
        await job_drain.reschedule(resources, INDEX, claims, away)
        return
    async with resources.postgres.across_tenants() as connection:
        waiting, ages = await index_jobs.confirm_indexed(connection, claims)
    if waiting:
        resources.publisher.wake(stages.EMBED, waiting)
    await fleet_counters.observe_time_to_searchable(resources.postgres, "keyword", ages)


async def _write(resources: Resources, generation: Generation, claims: list[Job]) -> None:
    found = await documents.load_documents(resources, claims)
    present = [
        found[key] for claim in claims if (key := (claim.tenant, claim.kind, claim.record_id)) in found
    ]
    if present:
        await points.upsert_points(resources.qdrant, generation.collection, present, bulk=True)
    await asyncio.gather(
        *(_tidy(resources, generation, claim, found) for claim in claims if _may_be_stale(claim, found))
    )


def _may_be_stale(claim: Job, found: dict[tuple[str, stages.RecordKind, str], IndexDocument]) -> bool:
    """A first version has no older points; all else may have."""
    document = found.get((claim.tenant, claim.kind, claim.record_id))
    return document is None or document.version > 1


async def _tidy(
    resources: Resources,
    generation: Generation,
    claim: Job,
    found: dict[tuple[str, stages.RecordKind, str], IndexDocument],
) -> None:
    document = found.get((claim.tenant, claim.kind, claim.record_id))
    keep = document.point_id if document else None
    await points.remove(
        resources.qdrant, generation.collection, claim.tenant, claim.record_id, except_version=keep
    )
