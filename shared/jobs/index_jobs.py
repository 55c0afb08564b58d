"""Every statement on the jobs that keep the search index up to date."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import BigInteger, Text

from shared.foundation.stages import RecordKind
from shared.infra.postgres import tenant_filter
from shared.infra.telemetry import traces
from shared.jobs.job import Job
from shared.jobs.queries import _HELD, _HELD_PARAMETERS, _HOLDING, _identities
from shared.jobs.table import job

_ENQUEUE_INDEX = text(
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
    RETURNING id, tenant, kind, record_id, version, generation, lease_token, attempts, pipeline, traceparent
    """
).bindparams(bindparam("record_ids", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(BigInteger)))


async def enqueue_index_jobs(
    connection: AsyncConnection,
    tenant: str,
    kind: RecordKind,
    versions: Mapping[str, int],
    *,
    delay: float = 0,
    generation: int | None = None,
) -> list[Job]:
    """Make records due for the index, in every generation or, as backfill, in one.

    `versions` maps each record id to the version that shall be found. `delay` (seconds) is the time
    that the writer takes to do it itself. A backfill never resets a row that is there.
    """
    rows = await connection.execute(
        _ENQUEUE_INDEX,
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
    return [Job.from_row(row) for row in rows.mappings()]


_CONFIRM_INDEXED = text(
    f"""
    WITH held AS ({_HELD} WHERE w.stage = 'index' {_HOLDING}),
    embeds AS (SELECT held.id FROM held JOIN index_generation g ON g.id = held.generation
               WHERE g.model IS NOT NULL),
    moved AS (
        UPDATE job SET stage = 'embed', lease_token = NULL, attempts = 0, run_at = now(),
                        last_error = NULL, reason_code = NULL
        FROM embeds WHERE job.id = embeds.id RETURNING job.id
    ), gone AS (
        DELETE FROM job USING held
        WHERE job.id = held.id AND held.id NOT IN (SELECT id FROM embeds) RETURNING job.id
    )
    SELECT (SELECT count(*) FROM moved) AS waiting, array_agg(age) FILTER (WHERE age IS NOT NULL) AS ages
    FROM held
    """  # noqa: S608  (constants only)
).bindparams(*_HELD_PARAMETERS)


class Confirmation(NamedTuple):
    """How many rows now wait to embed, and of what is found from now on, the seconds since it was written."""

    to_embed: int
    ages: list[float]


async def confirm_indexed(connection: AsyncConnection, claims: Sequence[Job]) -> Confirmation:
    """Move rows past the index stage where the claim still stands."""
    row = (await connection.execute(_CONFIRM_INDEXED, _identities(claims))).one()
    return Confirmation(row.waiting, row.ages or [])


_CONFIRM_EMBEDDED = text(
    f"WITH held AS ({_HELD} {_HOLDING})"  # noqa: S608
    " DELETE FROM job USING held WHERE job.id = held.id RETURNING held.age"
).bindparams(*_HELD_PARAMETERS)


async def confirm_embedded(connection: AsyncConnection, claims: Sequence[Job]) -> list[float]:
    """Delete rows whose vectors are written, where the claim still stands; return the ages, as above."""
    ages = (await connection.scalars(_CONFIRM_EMBEDDED, _identities(claims))).all()
    return [age for age in ages if age is not None]


_BACK_TO_INDEX = text(
    f"""
    WITH held AS ({_HELD} {_HOLDING})
    UPDATE job SET stage = 'index', lease_token = NULL, attempts = 0, run_at = now()
    FROM held WHERE job.id = held.id
    """  # noqa: S608
).bindparams(*_HELD_PARAMETERS)


async def reset_to_index(connection: AsyncConnection, claims: Sequence[Job]) -> None:
    """Send rows back to have their points written before vectors are added to them."""
    await connection.execute(_BACK_TO_INDEX, _identities(claims))


async def find_unindexed(
    connection: AsyncConnection, tenant: str, kind: RecordKind, record_ids: Sequence[str]
) -> list[Job]:
    """Return the index rows of records whose points are not written, and not in a worker's hands."""
    mine = (tenant_filter(job, tenant), job.c.kind == kind, job.c.record_id.in_(record_ids))
    waiting = (job.c.stage == "index", job.c.lease_token.is_(None), job.c.dead_at.is_(None))
    rows = await connection.execute(select(job).where(*mine, *waiting))
    return [Job.from_row(row) for row in rows.mappings()]
