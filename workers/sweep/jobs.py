"""Ring for what is due: rings that were lost, and rows that were put off until now."""

from contextlib import suppress

from shared.foundation import errors, stages
from shared.foundation.stages import Kind, State, Track
from shared.jobs import backlog, dead_jobs
from shared.jobs import queries as job_queries
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.resources import Resources
from workers.dream import run_pass
from workers.enrichment import enrich


async def hand_on(resources: Resources) -> dict[str, int]:
    """Ring for each stage with due rows, and move index generations on; return the rows by stage."""
    async with resources.postgres.fleet() as connection:
        due = await backlog.due(connection)
    for name, rows in due.items():
        resources.bell.ring(stages.STAGES[name], rows)
    # With Qdrant away, what was promoted is promoted, and the rest is tried again in a moment.
    with suppress(errors.Unavailable):
        await rebuild_index.advance(resources)
    return due


_LIMIT = 500
_REASON = "its worker ended {attempts} times while working on it"


async def end(resources: Resources) -> int:
    """Bring abandoned rows to a named end; return how many."""
    attempts = resources.settings.work_attempts
    async with resources.postgres.fleet() as connection:
        claims = await backlog.exhausted(connection, attempts, _LIMIT)
        for claim in claims:
            if claim.track is Track.INDEX:
                await dead_jobs.mark_dead(connection, claim, _REASON.format(attempts=claim.attempts))
            if claim.kind is Kind.SCOPE:  # its next activity makes it due again
                await job_queries.finish(connection, [claim])
    for claim in claims:
        if claim.track is Track.ENRICHMENT:
            await enrich.settle(resources, claim, State.FAILED, _REASON.format(attempts=claim.attempts))
        if claim.kind is Kind.RUN:
            await run_pass.abandon(resources, claim)
    return len(claims)
