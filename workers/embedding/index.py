"""Make the index agree with records: a point for the version that stands, none for what is gone.

The same for a record that is new, changed, archived or deleted: look what it is now, and write
that. So it does not matter how often or in what order rows are worked.
"""

import asyncio
from collections.abc import Sequence

from shared.foundation import errors, stages
from shared.foundation.stages import INDEX
from shared.infra.qdrant import MissingCollection
from shared.jobs import counters as fleet_counters
from shared.jobs import index_jobs
from shared.jobs.job import Claim
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.resources import Resources
from shared.search.index import generations, points
from shared.search.index.generations import Generation
from shared.search.index.points import Document
from workers.embedding import documents
from workers.runtime import drain as job_drain


async def index_batch(resources: Resources, claims: Sequence[Claim]) -> None:
    """Write what is due, generation by generation."""
    async with resources.postgres.fleet() as connection:
        known = {generation.id: generation for generation in await generations.all_of(connection)}
    held: dict[int, list[Claim]] = {}
    for claim in claims:
        held.setdefault(claim.generation, []).append(claim)
    for number, mine in held.items():
        await _index(resources, known.get(number), mine)


async def _index(resources: Resources, generation: Generation | None, claims: list[Claim]) -> None:
    try:
        if generation is not None:
            await _write(resources, generation, claims)
    except MissingCollection as lost:
        # Qdrant is new or was emptied, so everything else is lost too: make it, and all of it due.
        await job_drain.put_off(resources, INDEX, claims, errors.Unavailable("qdrant", str(lost)))
        await rebuild_index.prepare(resources)
        return
    except errors.Unavailable as away:
        await job_drain.put_off(resources, INDEX, claims, away)
        return
    async with resources.postgres.fleet() as connection:
        waiting, ages = await index_jobs.confirm_indexed(connection, claims)
    if waiting:
        resources.bell.ring(stages.EMBED, waiting)
    await fleet_counters.observe_time_to_searchable(resources.postgres, "keyword", ages)


async def _write(resources: Resources, generation: Generation, claims: list[Claim]) -> None:
    found = await documents.load(resources, claims)
    present = [found[key] for claim in claims if (key := (claim.tenant, claim.kind, claim.ref)) in found]
    if present:
        await points.put(resources.qdrant, generation.collection, present, bulk=True)
    await asyncio.gather(
        *(_tidy(resources, generation, claim, found) for claim in claims if _may_be_stale(claim, found))
    )


def _may_be_stale(claim: Claim, found: dict[tuple[str, stages.Kind, str], Document]) -> bool:
    """A first version has no older points; all else may have."""
    document = found.get((claim.tenant, claim.kind, claim.ref))
    return document is None or document.version > 1


async def _tidy(
    resources: Resources,
    generation: Generation,
    claim: Claim,
    found: dict[tuple[str, stages.Kind, str], Document],
) -> None:
    document = found.get((claim.tenant, claim.kind, claim.ref))
    keep = document.point_id if document else None
    await points.remove(resources.qdrant, generation.collection, claim.tenant, claim.ref, except_version=keep)
