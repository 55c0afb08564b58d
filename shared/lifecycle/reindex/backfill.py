"""Enqueue index jobs for every record of a kind, for one generation, tenant by tenant and page by page."""

from shared.foundation.stages import RecordKind
from shared.jobs import index_jobs
from shared.lifecycle.kinds import KINDS
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources


async def backfill(
    resources: Resources, kind: RecordKind, generation: int, *, is_searched: bool = False
) -> int:
    """Enqueue an index job for every record of a kind, and return how many.

    Records that are written meanwhile get their jobs from their writers. If the generation `is_searched`
    already, searches lack these records until their jobs are done, and say so.
    """
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    job_count = 0
    for tenant in tenants:
        async for page in KINDS[kind].pages(resources, tenant):
            async with resources.postgres.for_tenant(tenant) as tx:
                jobs = await index_jobs.enqueue_index_jobs(tx, tenant, kind, page, generation=generation)
                if is_searched:
                    await index_jobs.note_failure(tx, jobs, "qdrant: the collection is new")
            job_count += len(page)
    return job_count
