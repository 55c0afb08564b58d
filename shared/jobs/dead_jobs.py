"""Jobs that are given up: marked, counted for `/metrics` and logged, always together."""

import structlog
from sqlalchemy import func, update
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.stages import ReasonCode
from shared.jobs import counters
from shared.jobs.job import Job
from shared.jobs.table import job

log = structlog.get_logger()


async def mark_dead(connection: AsyncConnection, claim: Job, reason: str) -> None:
    """Mark an exhausted job dead with its reason, count it and log it.

    A dead job is shown, and never claimed again by itself. The mark and the count are written in the
    caller's transaction. If the claim no longer stands, nothing is written, counted or logged.
    """
    stage = await connection.scalar(
        update(job)
        .where(
            job.c.id == claim.id,
            job.c.lease_token.is_not_distinct_from(claim.lease_token),
            job.c.dead_at.is_(None),
        )
        .values(
            lease_token=None, dead_at=func.now(), last_error=reason[:500], reason_code=ReasonCode.EXHAUSTED
        )
        .returning(job.c.stage)
    )
    if stage is not None:
        await counters.increment(connection, "job_deaths", {stage: 1})
        log.error("job_dead", stage=stage, job_id=claim.id, reason=reason)
