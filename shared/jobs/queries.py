"""Every statement on work rows. Functions take the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, func, text, update
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import BigInteger, Text

from shared.foundation.stages import Pipeline, ReasonCode, RecordKind, Stage
from shared.infra.postgres import tenant_filter
from shared.infra.telemetry import traces
from shared.jobs.job import Job
from shared.jobs.table import job

_ENQUEUE = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, traceparent)
    SELECT :tenant, :kind, r.record_id, :pipeline, :stage, r.version, :traceparent
    FROM unnest(:record_ids, :versions) AS r (record_id, version) ORDER BY r.record_id
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO UPDATE
        SET stage = excluded.stage, version = excluded.version, run_at = now(),
            lease_token = NULL, attempts = 0, last_error = NULL, reason_code = NULL,
            dead_at = NULL, created_at = now(), traceparent = excluded.traceparent
    """
).bindparams(bindparam("record_ids", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(BigInteger)))


async def enqueue(
    connection: AsyncConnection, tenant: str, kind: RecordKind, stage: Stage, versions: Mapping[str, int]
) -> None:
    """Make records due for a stage outside the index. A row that is in work is taken back."""
    if versions:
        values = {"record_ids": list(versions), "versions": list(versions.values())}
        names = {"tenant": tenant, "kind": kind, "pipeline": stage.pipeline, "stage": stage.name}
        trace = {"traceparent": traces.traceparent()}
        await connection.execute(_ENQUEUE, names | values | trace)


_HELD = """
    SELECT w.id, w.generation, CASE WHEN NOT w.backfill
           THEN extract(epoch FROM clock_timestamp() - w.created_at)::float8 END AS age
    FROM job w
    JOIN unnest(:ids, :versions, :lease_tokens) AS c (id, version, lease_token)
      ON w.id = c.id AND w.version = c.version AND w.lease_token IS NOT DISTINCT FROM c.lease_token
"""
# In the order in which rows are enqueued: two transactions over the same rows must not wait for each other.
_HOLDING = "ORDER BY w.tenant, w.kind, w.record_id, w.generation FOR UPDATE OF w"
_HELD_PARAMETERS = (
    bindparam("ids", type_=ARRAY(BigInteger)),
    bindparam("versions", type_=ARRAY(BigInteger)),
    bindparam("lease_tokens", type_=ARRAY(UUID(as_uuid=False))),
)


_FINISH = text(
    f"WITH held AS ({_HELD} {_HOLDING})"  # noqa: S608
    " DELETE FROM job USING held WHERE job.id = held.id RETURNING job.id"
).bindparams(*_HELD_PARAMETERS)


async def complete(connection: AsyncConnection, claims: Sequence[Job]) -> set[int]:
    """Delete the rows whose claim still stands; return their ids.

    Call it in the transaction that records the outcome, before anything is recorded: a claim that
    is missing from the answer was taken over or overtaken, and its outcome must not be. What is held
    beside work rows is held before them, here and everywhere.
    """
    return set((await connection.scalars(_FINISH, _identities(claims))).all()) if claims else set()


def _identities(claims: Sequence[Job]) -> dict[str, Any]:
    return {
        "ids": [claim.id for claim in claims],
        "versions": [claim.version for claim in claims],
        "lease_tokens": [claim.lease_token for claim in claims],
    }


async def reschedule(
    connection: AsyncConnection,
    claim: Job,
    error: str,
    delay: float,
    *,
    reason_code: ReasonCode,
    refund: bool,
) -> None:
    """Give a claim back, due again in `delay` seconds; `refund` returns the attempt.

    `error` says why to people, `reason_code` to programs.
    """
    await connection.execute(
        update(job)
        .where(job.c.id == claim.id, job.c.lease_token == claim.lease_token)
        .values(
            lease_token=None,
            run_at=func.now() + func.make_interval(0, 0, 0, 0, 0, 0, delay),
            attempts=job.c.attempts - (1 if refund else 0),
            last_error=error[:500],
            reason_code=reason_code,
        )
    )


async def extend_lease(connection: AsyncConnection, claim: Job, lease: float) -> None:
    """Hold a claim for `lease` seconds from now, if it still stands."""
    later = func.now() + func.make_interval(0, 0, 0, 0, 0, 0, lease)
    await connection.execute(
        update(job).where(job.c.id == claim.id, job.c.lease_token == claim.lease_token).values(run_at=later)
    )


async def run_delayed_now(
    connection: AsyncConnection, tenant: str, stage: Stage, reason_code: ReasonCode
) -> int:
    """Make a tenant's delayed jobs of a stage due now, if they were delayed for `reason_code`.

    Return the number of jobs.
    """
    mine = (tenant_filter(job, tenant), job.c.stage == stage.name, job.c.lease_token.is_(None))
    put_off = (job.c.run_at > func.now(), job.c.reason_code == reason_code)
    statement = update(job).where(*mine, *put_off).values(run_at=func.now())
    return (await connection.execute(statement)).rowcount


async def release(connection: AsyncConnection, claims: Sequence[Job]) -> None:
    """Return claims untouched, due at once, as when a worker stops."""
    for claim in claims:
        await reschedule(connection, claim, "given back", 0, reason_code=ReasonCode.RELEASED, refund=True)


async def cancel(
    connection: AsyncConnection, tenant: str, kind: RecordKind, record_ids: Sequence[str], pipeline: Pipeline
) -> None:
    """Forget what was left to do for records on one track; a claim on them loses its token."""
    await connection.execute(
        delete(job).where(
            tenant_filter(job, tenant),
            job.c.kind == kind,
            job.c.record_id.in_(record_ids),
            job.c.pipeline == pipeline,
        )
    )
