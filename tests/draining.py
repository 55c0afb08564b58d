"""Process due jobs as workers would, inside the process of the test."""

from sqlalchemy import func, update

from shared.foundation.stages import EMBED, INDEX
from shared.jobs.table import job
from shared.platform.resources import Resources
from workers.embedding import embed, index
from workers.enrichment import enrich
from workers.runtime import drain as job_drain
from workers.sweep.jobs import dispatch_due_jobs

_BATCHES = ((INDEX, index.index_batch), (EMBED, embed.embed_batch))


async def drain(resources: Resources) -> None:
    """Claim and process jobs until none is due."""
    await resources.index_writer.close()
    while await _process_once(resources):
        await resources.index_writer.close()
    await dispatch_due_jobs(resources)


async def _process_once(resources: Resources) -> int:
    counts = await enrich.enrich_pending(resources)
    for stage, process_batch in _BATCHES:
        counts += await job_drain.drain(resources, stage, process_batch)
    return counts.total()


async def make_due(resources: Resources) -> None:
    """Make all delayed jobs due now, instead of waiting for them."""
    async with resources.postgres.across_tenants() as connection:
        await connection.execute(update(job).values(run_at=func.now()))
