"""What is left to do, looked at without taking any of it."""

from sqlalchemy import RowMapping, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.stages import Stage
from shared.infra.postgres import owned_by
from shared.jobs.job import CLAIM_COLUMNS, Claim
from shared.jobs.table import work

_REASONS = 20


async def due(connection: AsyncConnection) -> dict[str, int]:
    """Count what is due now, by stage."""
    rows = await connection.execute(
        select(work.c.stage, func.count().label("rows"))
        .where(work.c.dead_at.is_(None), work.c.run_at <= func.now())
        .group_by(work.c.stage)
    )
    return {row.stage: row.rows for row in rows}


async def due_rows(connection: AsyncConnection, stage: Stage, attempts: int, limit: int) -> list[Claim]:
    """Return what is due in a stage without taking it."""
    rows = await connection.execute(
        select(*(work.c[name] for name in CLAIM_COLUMNS))
        .where(work.c.stage == stage.name, work.c.run_at <= func.now(), work.c.dead_at.is_(None))
        .where(work.c.attempts < attempts)
        .order_by(work.c.run_at)
        .limit(limit)
    )
    return [Claim.of(row) for row in rows.mappings()]


async def exhausted(connection: AsyncConnection, attempts: int, limit: int) -> list[Claim]:
    """Return due rows whose last attempt never came back: each one's worker died with it."""
    rows = await connection.execute(
        select(work)
        .where(work.c.dead_at.is_(None), work.c.attempts >= attempts, work.c.run_at <= func.now())
        .order_by(work.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [Claim.of(row) for row in rows.mappings()]


async def put_off(connection: AsyncConnection, tenant: str) -> list[RowMapping]:
    """Return {stage, reason, rows} of a tenant's rows that wait for something to come back or to turn."""
    waits = (work.c.token.is_(None), work.c.run_at > func.now(), work.c.last_error.is_not(None))
    statement = (
        select(work.c.stage, work.c.last_error.label("reason"), func.count().label("rows"))
        .where(owned_by(work, tenant), work.c.dead_at.is_(None), *waits)
        .group_by(work.c.stage, work.c.last_error)
        .order_by(func.count().desc(), work.c.stage, work.c.last_error)
        .limit(_REASONS)
    )
    return list((await connection.execute(statement)).mappings())


async def pending(connection: AsyncConnection, tenant: str | None = None) -> list[RowMapping]:
    """Return {stage, waiting, running, backlog, dead, oldest_seconds} for each stage with rows.

    `backlog` is what is due or in work, as `due_and_running` tells a scaler: it leaves out what is put off.
    """
    alive, now = work.c.dead_at.is_(None), func.now()
    statement = select(
        work.c.stage,
        func.count().filter(alive).label("waiting"),
        func.count().filter(alive, work.c.token.is_not(None), work.c.run_at > now).label("running"),
        func.count().filter(alive, (work.c.run_at <= now) | work.c.token.is_not(None)).label("backlog"),
        func.count().filter(~alive).label("dead"),
        func.coalesce(func.extract("epoch", now - func.min(work.c.created_at).filter(alive)), 0).label(
            "oldest_seconds"
        ),
    ).group_by(work.c.stage)
    if tenant is not None:
        statement = statement.where(owned_by(work, tenant))
    return list((await connection.execute(statement)).mappings())
