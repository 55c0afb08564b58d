"""Work that nobody came back from: claimed as often as allowed, never finished, never given back."""

from shared.resources import Resources
from shared.stages import Kind, State, Track
from shared.work import backlog, dead_jobs
from shared.work import store as work
from workers.dream import walk
from workers.enrichment import enrich

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
                await work.finish(connection, [claim])
    for claim in claims:
        if claim.track is Track.ENRICHMENT:
            await enrich.settle(resources, claim, State.FAILED, _REASON.format(attempts=claim.attempts))
        if claim.kind is Kind.RUN:
            await walk.abandon(resources, claim)
    return len(claims)
