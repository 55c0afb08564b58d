"""Statements on the jobs that keep the search index up to date.

A record has one index job per generation. Functions use the caller's transaction and never commit.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, delete, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import BigInteger, Text

from shared.foundation.stages import RecordKind
from shared.infra.postgres import tenant_filter
from shared.infra.telemetry import traces
from shared.infra.transaction import Connection, FleetTransaction, Transaction
from shared.jobs import written_records
from shared.jobs.claimed_jobs import claim_parameters, on_claimed_jobs
from shared.jobs.job import Job
from shared.jobs.table import job as job_table

_ENQUEUE = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, generation, stage, version, backfill, run_at,
                     traceparent)
    SELECT :tenant, g.kind, r.record_id, 'index', g.id, 'index', r.version, :backfill,
           now() + make_interval(secs => :delay), :traceparent
    FROM unnest(:record_ids, :versions) AS r (record_id, version), index_generation g
    WHERE g.kind = :kind AND (CAST(:generation AS integer) IS NULL OR g.id = :generation)
    ORDER BY r.record_id, g.id
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO UPDATE
        SET stage = 'index', version = excluded.version, backfill = excluded.backfill,
            run_at = excluded.run_at, lease_token = NULL, attempts = 0, last_error = NULL, reason_code = NULL,
            dead_at = NULL, created_at = now(), traceparent = excluded.traceparent
        WHERE NOT excluded.backfill
    RETURNING id, tenant, kind, record_id, version, generation, lease_token, attempts, pipeline, traceparent,
              reason_code
    """
).bindparams(bindparam("record_ids", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(BigInteger)))

_CONFIRM_INDEXED = on_claimed_jobs(
    """,
    to_embed AS (
        SELECT claimed.id FROM claimed JOIN index_generation g ON g.id = claimed.generation
        WHERE g.model IS NOT NULL
    ), moved AS (
        UPDATE job SET stage = 'embed', lease_token = NULL, attempts = 0, run_at = now(),
                       last_error = NULL, reason_code = NULL
        FROM to_embed WHERE job.id = to_embed.id RETURNING job.id
    ), deleted AS (
        DELETE FROM job USING claimed
        WHERE job.id = claimed.id AND claimed.id NOT IN (SELECT id FROM to_embed) RETURNING job.id
    )
    SELECT (SELECT count(*) FROM moved) AS to_embed, array_agg(age) FILTER (WHERE age IS NOT NULL) AS ages,
           array_agg(id) AS ids, array_agg(version) AS versions
    FROM claimed
    """,
    stage="index",
)
_CONFIRM_EMBEDDED = on_claimed_jobs(
    "DELETE FROM job USING claimed WHERE job.id = claimed.id RETURNING claimed.age"
)
_RESET_TO_INDEX = on_claimed_jobs(
    """
    UPDATE job SET stage = 'index', lease_token = NULL, attempts = 0, run_at = now(),
                   last_error = 'qdrant: its point is missing', reason_code = 'unavailable'
    FROM claimed WHERE job.id = claimed.id
    """
)
_NOTE_FAILURE = text(
    """
    WITH failed AS (
        SELECT w.id FROM job w JOIN unnest(:ids, :versions) AS f (id, version)
          ON w.id = f.id AND w.version = f.version
        WHERE w.stage = 'index' ORDER BY w.tenant, w.kind, w.record_id, w.generation FOR UPDATE OF w
    )
    UPDATE job SET last_error = :error, reason_code = 'unavailable' FROM failed WHERE job.id = failed.id
    """
).bindparams(bindparam("ids", type_=ARRAY(BigInteger)), bindparam("versions", type_=ARRAY(BigInteger)))
# As in the index `job_missing_point_idx`. Other jobs in this stage miss nothing: a writer's own is confirmed
# a little after its point was written, and one that cleans up has a point already.
_LACKS_POINT = "w.stage = 'index' AND w.last_error IS NOT NULL"
LATE_SECONDS = 10.0
"""Seconds after its save from which a record without a vector is missed; most are embedded within two."""
# What can't be embedded at all is dead, and counted by `/v1/status`.
_LACKS_VECTOR = f"""
    w.stage = 'embed' AND w.dead_at IS NULL AND w.created_at < now() - make_interval(secs => {LATE_SECONDS})
"""
_LIST_INCOMPLETE = text(
    f"""
    SELECT g.id FROM index_generation g
    WHERE g.state = 'live' AND (EXISTS (SELECT FROM job w WHERE w.generation = g.id AND {_LACKS_POINT})
        OR EXISTS (SELECT FROM job w WHERE w.generation = g.id AND {_LACKS_VECTOR}))
    """  # noqa: S608  (constants only)
)
_FIND_MISSING = text(
    f"""
    SELECT EXISTS (SELECT FROM job w WHERE w.generation = :generation AND w.tenant = :tenant
                       AND {_LACKS_POINT}) AS points,
           EXISTS (SELECT FROM job w WHERE w.generation = :generation AND w.tenant = :tenant
                       AND {_LACKS_VECTOR}) AS vectors
    """  # noqa: S608  (constants only)
)


class Confirmation(NamedTuple):
    """The result of confirming jobs.

    `to_embed` is the number of jobs that are in the stage `embed` now. `ages` are the seconds between
    saving a record and finding it by keyword; backfills are left out. `confirmed` names the jobs whose
    claims were valid, as (id, version): a job that was enqueued again for a newer version keeps its id.
    """

    to_embed: int
    ages: list[float]
    confirmed: set[tuple[int, int]]


class Missing(NamedTuple):
    """What the index lacks of a tenant's records."""

    points: bool
    vectors: bool


async def enqueue_index_jobs(
    tx: Connection,
    tenant: str,
    kind: RecordKind,
    versions: Mapping[str, int],
    *,
    delay: float = 0,
    generation: int | None = None,
) -> list[Job]:
    """Enqueue records for every index generation or, as a backfill, for one; return the jobs.

    `versions` maps each record id to the version that search is to find. `delay` is in seconds: the
    time in which the writer indexes the records itself. A backfill does not change existing jobs.
    """
    if generation is None:
        written_records.note(tenant, kind, versions)
    rows = await tx.fetch(
        _ENQUEUE,
        {
            "tenant": tenant,
            "kind": kind,
            "record_ids": list(versions),
            "versions": list(versions.values()),
            "delay": delay,
            "generation": generation,
            "backfill": generation is not None,
            "traceparent": traces.traceparent(),
        },
    )
    return [Job.from_row(row) for row in rows]


async def confirm_indexed(tx: FleetTransaction, jobs: Sequence[Job]) -> Confirmation:
    """Move jobs past the stage `index` if their claims are still valid."""
    [row] = await tx.fetch(_CONFIRM_INDEXED, claim_parameters(jobs))
    confirmed = set(zip(row["ids"] or [], row["versions"] or [], strict=True))
    return Confirmation(row["to_embed"], row["ages"] or [], confirmed)


async def enqueue_cleanup(tx: FleetTransaction, jobs: Sequence[Job]) -> None:
    """Enqueue the records of jobs that were superseded while their points were written.

    The point may have come after that of the newer version, whose writer could not delete it. A worker
    reads the record as it is now and deletes what is older.
    """
    for job in jobs:
        await enqueue_index_jobs(
            tx, job.tenant, job.kind, {job.record_id: job.version + 1}, generation=job.generation
        )


async def confirm_embedded(tx: FleetTransaction, jobs: Sequence[Job]) -> list[float]:
    """Delete jobs whose vectors are written if their claims are still valid.

    Return the seconds since their records were saved; backfills are left out.
    """
    rows = await tx.fetch(_CONFIRM_EMBEDDED, claim_parameters(jobs))
    return [row["age"] for row in rows if row["age"] is not None]


async def reset_to_index(tx: FleetTransaction, jobs: Sequence[Job]) -> None:
    """Move jobs back to the stage `index`, because the points that need vectors do not exist."""
    await tx.execute(_RESET_TO_INDEX, claim_parameters(jobs))


async def note_failure(tx: Connection, jobs: Sequence[Job], reason: str) -> None:
    """Note why the points of these jobs could not be written, with those in the stage `index`.

    A claim stays valid: its worker may be about to write them.
    """
    ids, versions = [job.id for job in jobs], [job.version for job in jobs]
    values = {"ids": ids, "versions": versions, "error": reason[:500]}
    await tx.fetch(_NOTE_FAILURE, values)


async def list_incomplete_generations(tx: FleetTransaction) -> frozenset[int]:
    """Return the live generations that lack points or, for long, vectors of any tenant."""
    return frozenset([row["id"] for row in await tx.fetch(_LIST_INCOMPLETE)])


async def find_missing(tx: Transaction, generation: int) -> Missing:
    """Return whether a generation lacks points of a tenant, and whether it lacks vectors for long."""
    values = {"tenant": tx.tenant, "generation": generation}
    [row] = await tx.fetch(_FIND_MISSING, values)
    return Missing(row["points"], row["vectors"])


async def find_unindexed(tx: Transaction, kind: RecordKind, record_ids: Sequence[str]) -> list[Job]:
    """Return the unclaimed jobs in the stage `index` of some records."""
    rows = await tx.execute(
        select(job_table)
        .where(tenant_filter(job_table, tx.tenant), job_table.c.kind == kind)
        .where(job_table.c.record_id.in_(record_ids), job_table.c.stage == "index")
        .where(job_table.c.lease_token.is_(None), job_table.c.dead_at.is_(None))
    )
    return [Job.from_row(row) for row in rows.mappings()]


_COUNT_MISSING = text(
    """
    SELECT count(*) FROM job w
    WHERE w.generation = :candidate AND w.pipeline = 'index' AND w.dead_at IS NULL
      AND (w.backfill OR (w.stage = 'index' AND NOT EXISTS (
            SELECT FROM job o WHERE o.tenant = w.tenant AND o.kind = w.kind AND o.record_id = w.record_id
              AND o.pipeline = 'index' AND o.generation = :live AND o.stage = 'index')))
    """
)


async def count_missing(tx: FleetTransaction, candidate_id: int, live_id: int) -> int:
    """Return the number of records that the live generation has and the candidate does not have yet."""
    values = {"candidate": candidate_id, "live": live_id}
    return int(await tx.scalar(_COUNT_MISSING, values) or 0)


async def delete_of_generation(tx: FleetTransaction, generation_id: int) -> None:
    """Delete every job of a generation, of all tenants, dead ones too."""
    await tx.execute(delete(job_table).where(job_table.c.generation == generation_id))
