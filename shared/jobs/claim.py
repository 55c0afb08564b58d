"""Claim due jobs for the time of a lease, with equal shares for all tenants."""

from sqlalchemy import func, text, update

from shared.foundation.stages import RecordKind, Stage
from shared.infra.postgres import seconds, tenant_filter
from shared.infra.transaction import FleetTransaction, Transaction
from shared.jobs.job import JOB_COLUMNS, Job
from shared.jobs.table import job

# Each tenant with due jobs gets an equal share of the batch, so the 100 000 jobs of one tenant do not
# delay the ten jobs of another. The recursive part steps from tenant to tenant along the index `job_due_idx`;
# it does not read the whole backlog.
_CLAIM = text(
    """
    WITH RECURSIVE present AS (
        (SELECT tenant FROM job
         WHERE stage = :stage AND backfill = :backfill AND dead_at IS NULL ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT w.tenant FROM job w
                WHERE w.stage = :stage AND w.backfill = :backfill AND w.dead_at IS NULL
                  AND w.tenant > present.tenant ORDER BY w.tenant LIMIT 1)
        FROM present WHERE present.tenant IS NOT NULL
    ), due AS (
        SELECT present.tenant FROM present
        WHERE EXISTS (SELECT FROM job w
                      WHERE w.stage = :stage AND w.backfill = :backfill AND w.dead_at IS NULL
                        AND w.tenant = present.tenant AND w.run_at <= now() AND w.attempts < :attempts
                        AND (w.lease_token IS NULL OR w.attempts < :attempts - 1))
        ORDER BY random() LIMIT :limit
    ), picked AS (
        SELECT share.id FROM due CROSS JOIN LATERAL (
            SELECT w.id FROM job w
            WHERE w.stage = :stage AND w.backfill = :backfill AND w.dead_at IS NULL
              AND w.tenant = due.tenant AND w.run_at <= now() AND w.attempts < :attempts
              AND (w.lease_token IS NULL OR w.attempts < :attempts - 1)
            ORDER BY w.run_at
            LIMIT greatest(1, CAST(:limit AS integer) / (SELECT count(*) FROM due))
            FOR UPDATE SKIP LOCKED
        ) AS share
    )
    UPDATE job SET lease_token = gen_random_uuid(), attempts = attempts + 1,
                    run_at = now() + make_interval(secs => :lease)
    FROM picked WHERE job.id = picked.id
    RETURNING job.id, tenant, kind, record_id, version, generation, lease_token, attempts, pipeline,
              traceparent, reason_code
    """
)


# A due job with a lease token is one whose worker died. The worker had claimed many jobs, and nobody knows
# which of them killed it. So the final attempts of such jobs are made one at a time; otherwise one job that
# kills its workers would use up the attempts of the others.
_FINAL_ATTEMPT_LOCK = 0x10C1_0002
_LOCK_FINAL_ATTEMPT = text(f"SELECT pg_try_advisory_xact_lock({_FINAL_ATTEMPT_LOCK}) AS is_locked")
_CLAIM_FINAL_ATTEMPT = text(
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
    RETURNING id, tenant, kind, record_id, version, generation, lease_token, attempts, pipeline, traceparent,
              reason_code
    """
)


async def claim_batch(
    tx: FleetTransaction, stage: Stage, limit: int, lease: float, attempts: int
) -> list[Job]:
    """Claim up to `limit` due jobs for `lease` seconds.

    At most one final attempt after a worker's death comes first, then other jobs, then backfills.
    """
    jobs: list[Job] = []
    of_stage = {"stage": stage.name, "attempts": attempts}
    [lock] = await tx.fetch(_LOCK_FINAL_ATTEMPT)
    if lock["is_locked"]:
        rows = await tx.fetch(_CLAIM_FINAL_ATTEMPT, {**of_stage, "lease": lease})
        jobs += map(Job.from_row, rows)
    for backfill in (False, True):
        if rest := limit - len(jobs):
            values = {**of_stage, "backfill": backfill, "lease": lease, "limit": rest}
            jobs += map(Job.from_row, await tx.fetch(_CLAIM, values))
    return jobs


async def claim_one(
    tx: Transaction, kind: RecordKind, record_id: str, stage: Stage, lease: float
) -> Job | None:
    """Claim the job of one record; return None if it is not due, for example because it is claimed."""
    rows = await tx.execute(
        update(job)
        .where(
            tenant_filter(job, tx.tenant),
            job.c.kind == kind,
            job.c.record_id == record_id,
            job.c.stage == stage.name,
        )
        .where(job.c.run_at <= func.now(), job.c.dead_at.is_(None))
        .values(
            lease_token=func.gen_random_uuid(),
            attempts=job.c.attempts + 1,
            run_at=func.now() + seconds(lease),
            sent_at=None,
        )
        .returning(*(job.c[name] for name in JOB_COLUMNS))
    )
    row = rows.mappings().one_or_none()
    return None if row is None else Job.from_row(row)
