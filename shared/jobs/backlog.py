"""Read due, delayed and exhausted jobs, and count them, without claiming any."""

from sqlalchemy import RowMapping, func, select

from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Connection, FleetTransaction, Transaction
from shared.jobs.job import Job
from shared.jobs.table import job

_MAX_REASONS = 20


async def count_due(tx: FleetTransaction) -> dict[str, int]:
    """Return the number of jobs that are due now, by the name of their stage."""
    rows = await tx.execute(
        select(job.c.stage, func.count().label("rows"))
        .where(job.c.dead_at.is_(None), job.c.run_at <= func.now())
        .group_by(job.c.stage)
    )
    return {row.stage: row.rows for row in rows}


async def list_exhausted(tx: FleetTransaction, attempts: int, limit: int) -> list[Job]:
    """Return and lock due jobs whose last attempt never came back, because its worker died."""
    rows = await tx.execute(
        select(job)
        .where(job.c.dead_at.is_(None), job.c.attempts >= attempts, job.c.run_at <= func.now())
        .order_by(job.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [Job.from_row(row) for row in rows.mappings()]


async def list_delayed(tx: Transaction) -> list[RowMapping]:
    """Return {stage, reason, rows} of a tenant's delayed jobs, the most frequent reasons first."""
    is_delayed = (job.c.lease_token.is_(None), job.c.run_at > func.now(), job.c.last_error.is_not(None))
    statement = (
        select(job.c.stage, job.c.last_error.label("reason"), func.count().label("rows"))
        .where(tenant_filter(job, tx.tenant), job.c.dead_at.is_(None), *is_delayed)
        .group_by(job.c.stage, job.c.last_error)
        .order_by(func.count().desc(), job.c.stage, job.c.last_error)
        .limit(_MAX_REASONS)
    )
    return list((await tx.execute(statement)).mappings())


async def backlog_by_stage(tx: Connection, tenant: str | None = None) -> list[RowMapping]:
    """Return {stage, pending, running, backlog, dead, oldest_age_seconds} for each stage with jobs.

    `backlog` counts the jobs that are due or leased, as the SQL function `job_backlog` does for an
    autoscaler. It does not include delayed jobs. Without `tenant`, all tenants are counted.
    """
    is_alive, now = job.c.dead_at.is_(None), func.now()
    is_leased = job.c.lease_token.is_not(None)
    oldest_age = func.extract("epoch", now - func.min(job.c.created_at).filter(is_alive))
    statement = select(
        job.c.stage,
        func.count().filter(is_alive).label("pending"),
        func.count().filter(is_alive, is_leased, job.c.run_at > now).label("running"),
        func.count().filter(is_alive, (job.c.run_at <= now) | is_leased).label("backlog"),
        func.count().filter(~is_alive).label("dead"),
        func.coalesce(oldest_age, 0).label("oldest_age_seconds"),
    ).group_by(job.c.stage)
    if tenant is not None:
        statement = statement.where(tenant_filter(job, tenant))
    return list((await tx.execute(statement)).mappings())
