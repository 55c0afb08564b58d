"""Ring for what is due: rings that were lost, and rows that were put off until now."""

from contextlib import suppress

from shared.foundation import errors, stages
from shared.foundation.stages import MemoryState, Pipeline, RecordKind
from shared.jobs import backlog, dead_jobs
from shared.jobs import queries as job_queries
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.resources import Resources
from workers.dream import run_pass
from workers.enrichment import enrich


async def dispatch_due_jobs(resources: Resources) -> dict[str, int]:
    """Ring for each stage with due rows, and move index generations on; return the rows by stage."""
    async with resources.postgres.across_tenants() as connection:
        due = await backlog.count_due(connection)
    for name, rows in due.items():
        resources.publisher.wake(stages.STAGES[name], rows)
    # With Qdrant away, what was promoted is promoted, and the rest is tried again in a moment.
    with suppress(errors.Unavailable):
        await rebuild_index.promote_ready(resources)
    return due


_LIMIT = 500
_REASON = "its worker ended {attempts} times while working on it"


async def fail_exhausted_jobs(resources: Resources) -> int:
    """Bring abandoned rows to a named end; return how many."""
    attempts = resources.settings.job_max_attempts
    async with resources.postgres.across_tenants() as connection:
        claims = await backlog.list_exhausted(connection, attempts, _LIMIT)
        for claim in claims:
            if claim.pipeline is Pipeline.INDEX:
                await dead_jobs.mark_dead(connection, claim, _REASON.format(attempts=claim.attempts))
            if claim.kind is RecordKind.DREAM_SCOPE:  # its next activity makes it due again
                await job_queries.complete(connection, [claim])
    for claim in claims:
        if claim.pipeline is Pipeline.ENRICHMENT:
            await enrich.keep_as_written(
                resources, claim, MemoryState.FAILED, _REASON.format(attempts=claim.attempts)
            )
        if claim.kind is RecordKind.DREAM_RUN:
            await run_pass.fail_current_pass(resources, claim)
    return len(claims)
