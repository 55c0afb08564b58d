"""Statements on jobs: enqueue, complete, reschedule, release, cancel.

Those on index jobs alone are in `index_jobs`, claiming is in `claim`. Functions use the caller's
transaction and never commit.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, ScalarSelect, bindparam, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import BigInteger, Text

from shared.foundation.stages import REFUSALS, Pipeline, ReasonCode, RecordKind, Stage
from shared.infra.postgres import is_any_of, seconds, tenant_filter
from shared.infra.telemetry import traces
from shared.infra.transaction import Connection, FleetTransaction, Transaction
from shared.jobs.claimed_jobs import claim_parameters, on_claimed_jobs
from shared.jobs.job import LOCK_ORDER, Job
from shared.jobs.table import job as job_table

_ENQUEUE = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at, traceparent)
    SELECT :tenant, :kind, r.record_id, :pipeline, :stage, r.version, now() + make_interval(secs => :delay),
           :traceparent
    FROM unnest(:record_ids, :versions) AS r (record_id, version) ORDER BY r.record_id
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO UPDATE
        SET stage = excluded.stage, version = excluded.version, run_at = excluded.run_at,
            lease_token = NULL, attempts = 0, last_error = NULL, reason_code = NULL,
            dead_at = NULL, created_at = now(), traceparent = excluded.traceparent
    """
).bindparams(bindparam("record_ids", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(BigInteger)))
_ENQUEUE_MISSING = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version)
    SELECT :tenant, :kind, r.record_id, :pipeline, :stage, r.version
    FROM unnest(:record_ids, :versions) AS r (record_id, version) ORDER BY r.record_id
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO NOTHING
    """
).bindparams(bindparam("record_ids", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(BigInteger)))
_LOCK_VALID = on_claimed_jobs("SELECT id FROM claimed")
_COMPLETE = on_claimed_jobs("DELETE FROM job USING claimed WHERE job.id = claimed.id RETURNING job.id")


async def enqueue(
    tx: Connection,
    tenant: str,
    kind: RecordKind,
    stage: Stage,
    versions: Mapping[str, int],
    *,
    delay: float = 0,
) -> None:
    """Enqueue records for a stage of another pipeline than `index`; `versions` is by record id.

    They are due in `delay` seconds. An existing job is reset, and a claim on it becomes invalid.
    """
    if versions:
        values = {"record_ids": list(versions), "versions": list(versions.values())}
        names = {"tenant": tenant, "kind": kind, "pipeline": stage.pipeline, "stage": stage.name}
        trace = {"traceparent": traces.traceparent(), "delay": delay}
        await tx.execute(_ENQUEUE, names | values | trace)


async def enqueue_missing(
    tx: Transaction, kind: RecordKind, stage: Stage, versions: Mapping[str, int]
) -> None:
    """Enqueue those records for a stage that have no job in its pipeline; `versions` is by record id."""
    if versions:
        values = {"record_ids": list(versions), "versions": list(versions.values())}
        names = {"tenant": tx.tenant, "kind": kind, "pipeline": stage.pipeline, "stage": stage.name}
        await tx.execute(_ENQUEUE_MISSING, names | values)


async def get_unclaimed(tx: Transaction, kind: RecordKind, record_id: str, stage: Stage) -> Job:
    """Return the job that this transaction has enqueued, for a writer that does the work itself at first."""
    where = (
        tenant_filter(job_table, tx.tenant),
        job_table.c.kind == kind,
        job_table.c.record_id == record_id,
        job_table.c.pipeline == stage.pipeline,
    )
    return Job.from_row((await tx.execute(select(job_table).where(*where))).mappings().one())


async def complete(tx: Connection, jobs: Sequence[Job]) -> set[int]:
    """Delete the jobs whose claims are still valid; return their ids.

    Call this in the transaction that records the outcome, before anything else is recorded. If a job's
    id is not returned, its claim is no longer valid and its outcome must not be recorded. A transaction
    that also locks other rows must lock them before the jobs, here and everywhere, to avoid deadlocks.
    """
    rows = await tx.fetch(_COMPLETE, claim_parameters(jobs)) if jobs else []
    return {row["id"] for row in rows}


async def lock_valid(tx: Connection, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs whose claims are still valid; they stay so until the transaction ends."""
    rows = await tx.fetch(_LOCK_VALID, claim_parameters(jobs)) if jobs else []
    ids = {row["id"] for row in rows}
    return [job for job in jobs if job.id in ids]


async def reschedule(
    tx: Connection, job: Job, error: str, delay: float, *, reason_code: ReasonCode, refund: bool
) -> None:
    """End a claim and make the job due again in `delay` seconds; `refund` returns the attempt.

    `error` is the reason for people, `reason_code` the reason for programs.
    """
    await tx.execute(
        update(job_table)
        .where(job_table.c.id == job.id, job_table.c.lease_token == job.lease_token)
        .values(
            lease_token=None,
            run_at=func.now() + seconds(delay),
            attempts=job_table.c.attempts - (1 if refund else 0),
            last_error=error[:500],
            reason_code=reason_code,
        )
    )


async def extend_lease(tx: Connection, job: Job, lease: float) -> bool:
    """Extend the lease of a claim to `lease` seconds from now. Return whether the claim is valid."""
    extended = await tx.execute(
        update(job_table)
        .where(job_table.c.id == job.id, job_table.c.lease_token == job.lease_token)
        .values(run_at=func.now() + seconds(lease))
    )
    return extended.rowcount == 1


async def run_delayed_now(tx: Transaction, stage: Stage, reason_code: ReasonCode) -> int:
    """Make a tenant's delayed jobs of a stage due now, if they were delayed for `reason_code`.

    Return the number of jobs.
    """
    delayed = _locked(
        tenant_filter(job_table, tx.tenant),
        job_table.c.stage == stage.name,
        job_table.c.lease_token.is_(None),
        job_table.c.run_at > func.now(),
        job_table.c.reason_code == reason_code,
    )
    statement = update(job_table).where(job_table.c.id.in_(delayed)).values(run_at=func.now())
    return (await tx.execute(statement)).rowcount


def _locked(*where: ColumnElement[bool]) -> ScalarSelect[int]:
    """Return the ids of jobs, locked in the order in which every transaction locks several."""
    ordered = select(job_table.c.id).where(*where).order_by(*LOCK_ORDER(job_table.c))
    return ordered.with_for_update().scalar_subquery()


async def run_refused_now(tx: Connection, stage: Stage, limit: int) -> int:
    """Make up to `limit` jobs of a stage due now that wait because their model refused every request.

    Return the number of jobs.
    """
    waiting = (
        select(job_table.c.id)
        .where(
            job_table.c.stage == stage.name, job_table.c.backfill.is_(False), job_table.c.dead_at.is_(None)
        )
        .where(job_table.c.lease_token.is_(None), job_table.c.run_at > func.now())
        .where(job_table.c.reason_code.in_(REFUSALS))
        .order_by(job_table.c.run_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    statement = update(job_table).where(job_table.c.id.in_(waiting)).values(run_at=func.now())
    return (await tx.execute(statement)).rowcount


async def release(tx: FleetTransaction, jobs: Sequence[Job]) -> None:
    """End claims without using their attempts; the jobs are due at once. A stopping worker does this."""
    for job in jobs:
        await reschedule(tx, job, "released by its worker", 0, reason_code=ReasonCode.RELEASED, refund=True)


async def cancel(tx: Transaction, kind: RecordKind, record_ids: Sequence[str], pipeline: Pipeline) -> None:
    """Delete the jobs of some records in one pipeline; claims on them become invalid."""
    cancelled = _locked(
        tenant_filter(job_table, tx.tenant),
        job_table.c.kind == kind,
        is_any_of(job_table.c.record_id, record_ids),
        job_table.c.pipeline == pipeline,
    )
    await tx.execute(delete(job_table).where(job_table.c.id.in_(cancelled)))
