"""Take due rows: fairly between tenants, each for the length of a lease."""

from sqlalchemy import func, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.stages import RecordKind, Stage
from shared.infra.postgres import tenant_filter
from shared.jobs.job import JOB_COLUMNS, Job
from shared.jobs.table import job

# Tenants take turns: each one that has something due gets an equal share of the batch, so a
# backlog of 100 000 rows of one tenant does not delay another's ten. The recursive part hops
# from tenant to tenant along the index instead of reading the backlog.
_CLAIM = text(
    """
    WITH RECURSIVE hop AS (
        (SELECT tenant FROM job
         WHERE stage = :stage AND backfill = :backfill AND dead_at IS NULL ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT w.tenant FROM job w
                WHERE w.stage = :stage AND w.backfill = :backfill AND w.dead_at IS NULL
                  AND w.tenant > hop.tenant ORDER BY w.tenant LIMIT 1)
        FROM hop WHERE hop.tenant IS NOT NULL
    ), waiting AS (
        SELECT hop.tenant FROM hop
        WHERE EXISTS (SELECT FROM job w
                      WHERE w.stage = :stage AND w.backfill = :backfill AND w.dead_at IS NULL
                        AND w.tenant = hop.tenant AND w.run_at <= now() AND w.attempts < :attempts
                        AND (w.lease_token IS NULL OR w.attempts < :attempts - 1))
        ORDER BY random() LIMIT :limit
    ), picked AS (
        SELECT mine.id FROM waiting CROSS JOIN LATERAL (
            SELECT w.id FROM job w
            WHERE w.stage = :stage AND w.backfill = :backfill AND w.dead_at IS NULL
              AND w.tenant = waiting.tenant AND w.run_at <= now() AND w.attempts < :attempts
              AND (w.lease_token IS NULL OR w.attempts < :attempts - 1)
            ORDER BY w.run_at
            LIMIT greatest(1, CAST(:limit AS integer) / (SELECT count(*) FROM waiting))
            FOR UPDATE SKIP LOCKED
        ) AS mine
    )
    UPDATE job SET lease_token = gen_random_uuid(), attempts = attempts + 1,
                    run_at = now() + make_interval(secs => :lease)
    FROM picked WHERE job.id = picked.id
    RETURNING job.id, tenant, kind, record_id, version, generation, lease_token, attempts, pipeline,
              traceparent
    """
)


# A due row with a token is one whose worker died. Which of the dozens that it held killed it nobody
# knows, so the last attempt of such rows is made one by one: else a row that kills its workers
# would take blameless ones along to the end.
_LAST_CHANCES_LOCK = 0x10C1_0002
_CLAIM_LAST_CHANCE = text(
    """
    UPDATE job SET lease_token = gen_random_uuid(), attempts = attempts + 1,
                    run_at = now() + make_interval(secs => :lease)
    WHERE id = (SELECT w.id FROM job w
                WHERE w.stage = :stage AND w.dead_at IS NULL AND w.run_at <= now()
                  AND w.lease_token IS NOT NULL AND w.attempts = :attempts - 1
                ORDER BY w.run_at LIMIT 1 FOR UPDATE SKIP LOCKED)
      AND NOT EXISTS (SELECT FROM job o
                      WHERE o.stage = :stage AND o.dead_at IS NULL AND o.run_at > now()
                        AND o.lease_token IS NOT NULL AND o.attempts >= :attempts)
    RETURNING id, tenant, kind, record_id, version, generation, lease_token, attempts, pipeline, traceparent
    """
)


async def claim_batch(
    connection: AsyncConnection, stage: Stage, limit: int, lease: float, attempts: int
) -> list[Job]:
    """Take up to `limit` due rows for `lease` seconds: one last chance, then fresh ones, then backfill."""
    claims: list[Job] = []
    if await connection.scalar(select(func.pg_try_advisory_xact_lock(_LAST_CHANCES_LOCK))):
        values = {"stage": stage.name, "lease": lease, "attempts": attempts}
        claims += [
            Job.from_row(row) for row in (await connection.execute(_CLAIM_LAST_CHANCE, values)).mappings()
        ]
    for backfill in (False, True):
        values = {"stage": stage.name, "backfill": backfill, "lease": lease, "attempts": attempts}
        rows = await connection.execute(_CLAIM, values | {"limit": limit - len(claims)})
        claims += [Job.from_row(row) for row in rows.mappings()]
        if len(claims) >= limit:
            break
    return claims


async def claim_one(
    connection: AsyncConnection, tenant: str, kind: RecordKind, record_id: str, stage: Stage, lease: float
) -> Job | None:
    """Take one due row by name; None when it is not due or in somebody's hands."""
    rows = await connection.execute(
        update(job)
        .where(
            tenant_filter(job, tenant),
            job.c.kind == kind,
            job.c.record_id == record_id,
            job.c.stage == stage.name,
        )
        .where(job.c.run_at <= func.now(), job.c.dead_at.is_(None))
        .values(
            lease_token=func.gen_random_uuid(),
            attempts=job.c.attempts + 1,
            run_at=func.now() + func.make_interval(0, 0, 0, 0, 0, 0, lease),
        )
        .returning(*(job.c[name] for name in JOB_COLUMNS))
    )
    row = rows.mappings().one_or_none()
    return None if row is None else Job.from_row(row)
