"""Work off what is due, as workers would, inside the test's own process."""

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
    """Claim and work until nothing more is due now."""
    await resources.index_writer.close()
    while await _work_once(resources):
        await resources.index_writer.close()
    await dispatch_due_jobs(resources)


async def _work_once(resources: Resources) -> int:
    worked = await enrich.enrich_pending(resources)
    for stage, batch in _BATCHES:
        worked += await job_drain.drain(resources, stage, batch)
    return worked.total()


async def make_due(resources: Resources) -> None:
    """Bring what was put off forward to now, instead of waiting for it."""
    async with resources.postgres.across_tenants() as connection:
        await connection.execute(update(job).values(run_at=func.now()))
