"""Make the index agree with records: a point for a record's current version, and none for a deleted record.

New, changed, archived and deleted records are handled in the same way: the record is read, and what it
is now is written. So the number and the order of runs do not matter.
"""

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
from workers.embedding import documents
from workers.runtime import drain as job_drain


async def index_batch(resources: Resources, jobs: Sequence[Job]) -> None:
    """Write the points of jobs, generation by generation."""
    async with resources.postgres.across_tenants() as tx:
        by_id = {generation.id: generation for generation in await generations.list_generations(tx)}
    jobs_by_generation: dict[int, list[Job]] = {}
    for job in jobs:
        jobs_by_generation.setdefault(job.generation, []).append(job)
    for number, generation_jobs in jobs_by_generation.items():
        await _index(resources, by_id.get(number), generation_jobs)


async def _index(resources: Resources, generation: Generation | None, jobs: list[Job]) -> None:
    try:
        if generation is not None:
            await _write_points(resources, generation, jobs)
    except CollectionNotFound as error:
        # Qdrant is new or was emptied, so all other points are lost, too: create the collection, and
        # make all records due.
        await job_drain.reschedule(resources, INDEX, jobs, errors.Unavailable("qdrant", str(error)))
        await rebuild_index.prepare_index(resources)
        return
    except errors.Unavailable as error:
        await job_drain.reschedule(resources, INDEX, jobs, error)
        return
    async with resources.postgres.across_tenants() as tx:
        to_embed, ages, _ = await index_jobs.confirm_indexed(tx, jobs)
    if to_embed:
        resources.publisher.wake(stages.EMBED, to_embed)
    await fleet_counters.observe_time_to_searchable(resources.postgres, "keyword", ages)


async def _write_points(resources: Resources, generation: Generation, jobs: list[Job]) -> None:
    documents_by_key = await documents.load_documents(resources, jobs)
    deleted_jobs = [job for job in jobs if (job.tenant, job.kind, job.record_id) not in documents_by_key]
    batch = list(documents_by_key.values())
    await points.write_records(resources.qdrant, generation.collection, batch, deleted_jobs, bulk=True)
