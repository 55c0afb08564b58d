"""Work that nobody came back from: claimed as often as allowed, never finished, never given back."""

from shared.resources import Resources
from shared.stages import State
from shared.work import store as work
from workers.enrichment import enrich

_LIMIT = 500
_REASON = "its worker ended {attempts} times while working on it"


async def end(resources: Resources) -> int:
    """Bring abandoned rows to a named end; return how many."""
    attempts = resources.settings.work_attempts
    async with resources.postgres.fleet() as connection:
        claims = await work.exhausted(connection, attempts, _LIMIT)
        for claim in claims:
            if not claim.is_enrichment:
                await work.bury(connection, claim, _REASON.format(attempts=claim.attempts))
    for claim in claims:
        if claim.is_enrichment:
            await enrich.settle(resources, claim, State.FAILED, _REASON.format(attempts=claim.attempts))
    return len(claims)
