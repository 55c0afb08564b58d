"""Mark jobs as dead. A dead job is always counted for `/metrics` and logged as well."""

import structlog
from sqlalchemy import func, update

from shared.foundation.stages import ReasonCode
from shared.infra.transaction import FleetTransaction
from shared.jobs import counters
from shared.jobs.job import Job
from shared.jobs.table import job as job_table

log = structlog.get_logger()


async def mark_dead(tx: FleetTransaction, job: Job, reason: str) -> None:
    """Mark an exhausted job as dead with its reason, count it and log it.

    A dead job stays visible and is never claimed again. The mark and the count are written in the
    caller's transaction. If another claim has replaced this one, nothing is written, counted or logged.
    """
    stage = await tx.scalar(
        update(job_table)
        .where(
            job_table.c.id == job.id,
            job_table.c.lease_token.is_not_distinct_from(job.lease_token),
            job_table.c.dead_at.is_(None),
        )
        .values(
            lease_token=None, dead_at=func.now(), last_error=reason[:500], reason_code=ReasonCode.EXHAUSTED
        )
        .returning(job_table.c.stage)
    )
    if stage is not None:
        await counters.increment(tx, "job_deaths", {stage: 1})
        log.error("job_dead", stage=stage, job_id=job.id, reason=reason)
