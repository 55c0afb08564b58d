"""Every statement on work rows. Functions take the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import RowMapping, bindparam, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import BigInteger, Text

from shared.foundation.stages import Kind, ReasonCode, Stage, Track
from shared.infra.postgres import owned_by
from shared.infra.telemetry import traces
from shared.jobs.table import work


@dataclass(frozen=True, slots=True)
class Claim:
    """A work row in somebody's hands. `token` is None for who wrote the row and works at once."""

    id: int
    tenant: str
    kind: Kind
    ref: str
    version: int
    generation: int
    token: str | None
    attempts: int = 0
    track: Track = Track.INDEX
    traceparent: str | None = None

    @classmethod
    def of(cls, row: RowMapping) -> "Claim":
        """Read a claim from a row of `work`."""
        fields: Mapping[str, Any] = {name: row[name] for name in CLAIM_COLUMNS}
        token = None if row["token"] is None else str(row["token"])
        return cls(**{**fields, "kind": Kind(row["kind"]), "track": Track(row["track"]), "token": token})


CLAIM_COLUMNS = (
    *("id", "tenant", "kind", "ref", "version", "generation", "token", "attempts", "track"),
    "traceparent",
)

_ENQUEUE_INDEX = text(
    """
    INSERT INTO work (tenant, kind, ref, track, generation, stage, version, backfill, run_at, traceparent)
    SELECT :tenant, g.kind, r.ref, 'index', g.id, 'index', r.version, :backfill,
           now() + make_interval(secs => :delay), :traceparent
    FROM unnest(:refs, :versions) AS r (ref, version), index_generation g
    WHERE g.kind = :kind AND (CAST(:generation AS integer) IS NULL OR g.id = :generation)
    ORDER BY r.ref, g.id
    ON CONFLICT (tenant, kind, ref, track, generation) DO UPDATE
        SET stage = 'index', version = excluded.version, backfill = excluded.backfill,
            run_at = excluded.run_at, token = NULL, attempts = 0, last_error = NULL, reason_code = NULL,
            dead_at = NULL, created_at = now(), traceparent = excluded.traceparent
        WHERE NOT excluded.backfill
    RETURNING id, tenant, kind, ref, version, generation, token, attempts, track, traceparent
    """
).bindparams(bindparam("refs", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(BigInteger)))


async def enqueue_index(
    connection: AsyncConnection,
    tenant: str,
    kind: Kind,
    versions: Mapping[str, int],
    *,
    delay: float = 0,
    generation: int | None = None,
) -> list[Claim]:
    """Make records due for the index, in every generation or, as backfill, in one.

    `versions` maps each ref to the version that shall be found. `delay` (seconds) is the time
    that the writer takes to do it itself. A backfill never resets a row that is there.
    """
    rows = await connection.execute(
        _ENQUEUE_INDEX,
        {
            "tenant": tenant,
            "kind": kind,
            "refs": list(versions),
            "versions": list(versions.values()),
            "delay": delay,
            "generation": generation,
            "backfill": generation is not None,
            "traceparent": traces.traceparent(),
        },
    )
    return [Claim.of(row) for row in rows.mappings()]


_ENQUEUE = text(
    """
    INSERT INTO work (tenant, kind, ref, track, stage, version, traceparent)
    SELECT :tenant, :kind, r.ref, :track, :stage, r.version, :traceparent
    FROM unnest(:refs, :versions) AS r (ref, version) ORDER BY r.ref
    ON CONFLICT (tenant, kind, ref, track, generation) DO UPDATE
        SET stage = excluded.stage, version = excluded.version, run_at = now(),
            token = NULL, attempts = 0, last_error = NULL, reason_code = NULL,
            dead_at = NULL, created_at = now(), traceparent = excluded.traceparent
    """
).bindparams(bindparam("refs", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(BigInteger)))


async def enqueue(
    connection: AsyncConnection, tenant: str, kind: Kind, stage: Stage, versions: Mapping[str, int]
) -> None:
    """Make records due for a stage outside the index. A row that is in work is taken back."""
    if versions:
        values = {"refs": list(versions), "versions": list(versions.values())}
        names = {"tenant": tenant, "kind": kind, "track": stage.track, "stage": stage.name}
        trace = {"traceparent": traces.traceparent()}
        await connection.execute(_ENQUEUE, names | values | trace)


_HELD = """
    SELECT w.id, w.generation, CASE WHEN NOT w.backfill
           THEN extract(epoch FROM clock_timestamp() - w.created_at)::float8 END AS age
    FROM work w
    JOIN unnest(:ids, :versions, :tokens) AS c (id, version, token)
      ON w.id = c.id AND w.version = c.version AND w.token IS NOT DISTINCT FROM c.token
"""
# In the order in which rows are enqueued: two transactions over the same rows must not wait for each other.
_HOLDING = "ORDER BY w.tenant, w.kind, w.ref, w.generation FOR UPDATE OF w"
_HELD_PARAMETERS = (
    bindparam("ids", type_=ARRAY(BigInteger)),
    bindparam("versions", type_=ARRAY(BigInteger)),
    bindparam("tokens", type_=ARRAY(UUID(as_uuid=False))),
)

_CONFIRM_INDEXED = text(
    f"""
    WITH held AS ({_HELD} WHERE w.stage = 'index' {_HOLDING}),
    embeds AS (SELECT held.id FROM held JOIN index_generation g ON g.id = held.generation
               WHERE g.model IS NOT NULL),
    moved AS (
        UPDATE work SET stage = 'embed', token = NULL, attempts = 0, run_at = now(),
                        last_error = NULL, reason_code = NULL
        FROM embeds WHERE work.id = embeds.id RETURNING work.id
    ), gone AS (
        DELETE FROM work USING held
        WHERE work.id = held.id AND held.id NOT IN (SELECT id FROM embeds) RETURNING work.id
    )
    SELECT (SELECT count(*) FROM moved) AS waiting, array_agg(age) FILTER (WHERE age IS NOT NULL) AS ages
    FROM held
    """  # noqa: S608  (constants only)
).bindparams(*_HELD_PARAMETERS)


class Confirmed(NamedTuple):
    """How many rows now wait to embed, and of what is found from now on, the seconds since it was written."""

    waiting: int
    ages: list[float]


async def confirm_indexed(connection: AsyncConnection, claims: Sequence[Claim]) -> Confirmed:
    """Move rows past the index stage where the claim still stands."""
    row = (await connection.execute(_CONFIRM_INDEXED, _identities(claims))).one()
    return Confirmed(row.waiting, row.ages or [])


_CONFIRM_EMBEDDED = text(
    f"WITH held AS ({_HELD} {_HOLDING})"  # noqa: S608
    " DELETE FROM work USING held WHERE work.id = held.id RETURNING held.age"
).bindparams(*_HELD_PARAMETERS)


async def confirm_embedded(connection: AsyncConnection, claims: Sequence[Claim]) -> list[float]:
    """Delete rows whose vectors are written, where the claim still stands; return the ages, as above."""
    ages = (await connection.scalars(_CONFIRM_EMBEDDED, _identities(claims))).all()
    return [age for age in ages if age is not None]


_FINISH = text(
    f"WITH held AS ({_HELD} {_HOLDING})"  # noqa: S608
    " DELETE FROM work USING held WHERE work.id = held.id RETURNING work.id"
).bindparams(*_HELD_PARAMETERS)


async def finish(connection: AsyncConnection, claims: Sequence[Claim]) -> set[int]:
    """Delete the rows whose claim still stands; return their ids.

    Call it in the transaction that records the outcome, before anything is recorded: a claim that
    is missing from the answer was taken over or overtaken, and its outcome must not be. What is held
    beside work rows is held before them, here and everywhere.
    """
    return set((await connection.scalars(_FINISH, _identities(claims))).all()) if claims else set()


def _identities(claims: Sequence[Claim]) -> dict[str, Any]:
    return {
        "ids": [claim.id for claim in claims],
        "versions": [claim.version for claim in claims],
        "tokens": [claim.token for claim in claims],
    }


_BACK_TO_INDEX = text(
    f"""
    WITH held AS ({_HELD} {_HOLDING})
    UPDATE work SET stage = 'index', token = NULL, attempts = 0, run_at = now()
    FROM held WHERE work.id = held.id
    """  # noqa: S608
).bindparams(*_HELD_PARAMETERS)


async def back_to_index(connection: AsyncConnection, claims: Sequence[Claim]) -> None:
    """Send rows back to have their points written before vectors are added to them."""
    await connection.execute(_BACK_TO_INDEX, _identities(claims))


async def unwritten(connection: AsyncConnection, tenant: str, kind: Kind, refs: Sequence[str]) -> list[Claim]:
    """Return the index rows of records whose points are not written, and not in a worker's hands."""
    mine = (owned_by(work, tenant), work.c.kind == kind, work.c.ref.in_(refs))
    waiting = (work.c.stage == "index", work.c.token.is_(None), work.c.dead_at.is_(None))
    rows = await connection.execute(select(work).where(*mine, *waiting))
    return [Claim.of(row) for row in rows.mappings()]


async def postpone(
    connection: AsyncConnection,
    claim: Claim,
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
        update(work)
        .where(work.c.id == claim.id, work.c.token == claim.token)
        .values(
            token=None,
            run_at=func.now() + func.make_interval(0, 0, 0, 0, 0, 0, delay),
            attempts=work.c.attempts - (1 if refund else 0),
            last_error=error[:500],
            reason_code=reason_code,
        )
    )


async def extend(connection: AsyncConnection, claim: Claim, lease: float) -> None:
    """Hold a claim for `lease` seconds from now, if it still stands."""
    later = func.now() + func.make_interval(0, 0, 0, 0, 0, 0, lease)
    await connection.execute(
        update(work).where(work.c.id == claim.id, work.c.token == claim.token).values(run_at=later)
    )


async def bring_forward(
    connection: AsyncConnection, tenant: str, stage: Stage, reason_code: ReasonCode
) -> int:
    """Make a tenant's delayed jobs of a stage due now, if they were delayed for `reason_code`.

    Return the number of jobs.
    """
    mine = (owned_by(work, tenant), work.c.stage == stage.name, work.c.token.is_(None))
    put_off = (work.c.run_at > func.now(), work.c.reason_code == reason_code)
    statement = update(work).where(*mine, *put_off).values(run_at=func.now())
    return (await connection.execute(statement)).rowcount


async def give_back(connection: AsyncConnection, claims: Sequence[Claim]) -> None:
    """Return claims untouched, due at once, as when a worker stops."""
    for claim in claims:
        await postpone(connection, claim, "given back", 0, reason_code=ReasonCode.RELEASED, refund=True)


async def drop(
    connection: AsyncConnection, tenant: str, kind: Kind, refs: Sequence[str], track: Track
) -> None:
    """Forget what was left to do for records on one track; a claim on them loses its token."""
    await connection.execute(
        delete(work).where(
            owned_by(work, tenant), work.c.kind == kind, work.c.ref.in_(refs), work.c.track == track
        )
    )
