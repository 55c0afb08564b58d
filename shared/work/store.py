"""Every statement on work rows. Functions take the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, bindparam, delete, func, literal, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import BigInteger, Text

from shared.clients.postgres import owned_by
from shared.stages import Kind, Stage, Track
from shared.work.table import tally, work


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

    @classmethod
    def of(cls, row: RowMapping) -> "Claim":
        """Read a claim from a row of `work`."""
        fields: Mapping[str, Any] = {name: row[name] for name in _CLAIM_COLUMNS}
        token = None if row["token"] is None else str(row["token"])
        return cls(**{**fields, "kind": Kind(row["kind"]), "track": Track(row["track"]), "token": token})


_CLAIM_COLUMNS = ("id", "tenant", "kind", "ref", "version", "generation", "token", "attempts", "track")

_ENQUEUE_INDEX = text(
    """
    INSERT INTO work (tenant, kind, ref, track, generation, stage, version, backfill, run_at)
    SELECT :tenant, g.kind, r.ref, 'index', g.id, 'index', r.version, :backfill,
           now() + make_interval(secs => :delay)
    FROM unnest(:refs, :versions) AS r (ref, version), index_generation g
    WHERE g.kind = :kind AND (CAST(:generation AS integer) IS NULL OR g.id = :generation)
    ORDER BY r.ref, g.id
    ON CONFLICT (tenant, kind, ref, track, generation) DO UPDATE
        SET stage = 'index', version = excluded.version, backfill = excluded.backfill,
            run_at = excluded.run_at, token = NULL, attempts = 0, last_error = NULL, dead_at = NULL
        WHERE NOT excluded.backfill
    RETURNING id, tenant, kind, ref, version, generation, token, attempts, track
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
        },
    )
    return [Claim.of(row) for row in rows.mappings()]


_ENQUEUE = text(
    """
    INSERT INTO work (tenant, kind, ref, track, stage, version)
    SELECT :tenant, :kind, r.ref, :track, :stage, r.version
    FROM unnest(:refs, :versions) AS r (ref, version) ORDER BY r.ref
    ON CONFLICT (tenant, kind, ref, track, generation) DO UPDATE
        SET stage = excluded.stage, version = excluded.version, run_at = now(),
            token = NULL, attempts = 0, last_error = NULL, dead_at = NULL
    """
).bindparams(bindparam("refs", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(BigInteger)))


async def enqueue(
    connection: AsyncConnection, tenant: str, kind: Kind, stage: Stage, versions: Mapping[str, int]
) -> None:
    """Make records due for a stage outside the index. A row that is in work is taken back."""
    if versions:
        values = {"refs": list(versions), "versions": list(versions.values())}
        names = {"tenant": tenant, "kind": kind, "track": stage.track, "stage": stage.name}
        await connection.execute(_ENQUEUE, names | values)


# Tenants take turns: each one that has something due gets an equal share of the batch, so a
# backlog of 100 000 rows of one tenant does not delay another's ten. The recursive part hops
# from tenant to tenant along the index instead of reading the backlog.
_CLAIM = text(
    """
    WITH RECURSIVE hop AS (
        (SELECT tenant FROM work
         WHERE stage = :stage AND backfill = :backfill AND dead_at IS NULL ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT w.tenant FROM work w
                WHERE w.stage = :stage AND w.backfill = :backfill AND w.dead_at IS NULL
                  AND w.tenant > hop.tenant ORDER BY w.tenant LIMIT 1)
        FROM hop WHERE hop.tenant IS NOT NULL
    ), waiting AS (
        SELECT hop.tenant FROM hop
        WHERE EXISTS (SELECT FROM work w
                      WHERE w.stage = :stage AND w.backfill = :backfill AND w.dead_at IS NULL
                        AND w.tenant = hop.tenant AND w.run_at <= now() AND w.attempts < :attempts
                        AND (w.token IS NULL OR w.attempts < :attempts - 1))
        ORDER BY random() LIMIT :limit
    ), picked AS (
        SELECT mine.id FROM waiting CROSS JOIN LATERAL (
            SELECT w.id FROM work w
            WHERE w.stage = :stage AND w.backfill = :backfill AND w.dead_at IS NULL
              AND w.tenant = waiting.tenant AND w.run_at <= now() AND w.attempts < :attempts
              AND (w.token IS NULL OR w.attempts < :attempts - 1)
            ORDER BY w.run_at
            LIMIT greatest(1, CAST(:limit AS integer) / (SELECT count(*) FROM waiting))
            FOR UPDATE SKIP LOCKED
        ) AS mine
    )
    UPDATE work SET token = gen_random_uuid(), attempts = attempts + 1,
                    run_at = now() + make_interval(secs => :lease)
    FROM picked WHERE work.id = picked.id
    RETURNING work.id, tenant, kind, ref, version, generation, token, attempts, track
    """
)


# A due row with a token is one whose worker died. Which of the dozens that it held killed it nobody
# knows, so the last attempt of such rows is made one by one: else a row that kills its workers
# would take blameless ones along to the end.
_LAST_CHANCES_LOCK = 0x10C1_0002
_CLAIM_LAST_CHANCE = text(
    """
    UPDATE work SET token = gen_random_uuid(), attempts = attempts + 1,
                    run_at = now() + make_interval(secs => :lease)
    WHERE id = (SELECT w.id FROM work w
                WHERE w.stage = :stage AND w.dead_at IS NULL AND w.run_at <= now()
                  AND w.token IS NOT NULL AND w.attempts = :attempts - 1
                ORDER BY w.run_at LIMIT 1 FOR UPDATE SKIP LOCKED)
      AND NOT EXISTS (SELECT FROM work o
                      WHERE o.stage = :stage AND o.dead_at IS NULL AND o.run_at > now()
                        AND o.token IS NOT NULL AND o.attempts >= :attempts)
    RETURNING id, tenant, kind, ref, version, generation, token, attempts, track
    """
)


async def claim(
    connection: AsyncConnection, stage: Stage, limit: int, lease: float, attempts: int
) -> list[Claim]:
    """Take up to `limit` due rows for `lease` seconds: one last chance, then fresh ones, then backfill."""
    claims: list[Claim] = []
    if await connection.scalar(select(func.pg_try_advisory_xact_lock(_LAST_CHANCES_LOCK))):
        values = {"stage": stage.name, "lease": lease, "attempts": attempts}
        claims += [Claim.of(row) for row in (await connection.execute(_CLAIM_LAST_CHANCE, values)).mappings()]
    for backfill in (False, True):
        values = {"stage": stage.name, "backfill": backfill, "lease": lease, "attempts": attempts}
        rows = await connection.execute(_CLAIM, values | {"limit": limit - len(claims)})
        claims += [Claim.of(row) for row in rows.mappings()]
        if len(claims) >= limit:
            break
    return claims


async def claim_one(
    connection: AsyncConnection, tenant: str, kind: Kind, ref: str, stage: Stage, lease: float
) -> Claim | None:
    """Take one due row by name; None when it is not due or in somebody's hands."""
    rows = await connection.execute(
        update(work)
        .where(owned_by(work, tenant), work.c.kind == kind, work.c.ref == ref, work.c.stage == stage.name)
        .where(work.c.run_at <= func.now(), work.c.dead_at.is_(None))
        .values(
            token=func.gen_random_uuid(),
            attempts=work.c.attempts + 1,
            run_at=func.now() + func.make_interval(0, 0, 0, 0, 0, 0, lease),
        )
        .returning(*(work.c[name] for name in _CLAIM_COLUMNS))
    )
    row = rows.mappings().one_or_none()
    return None if row is None else Claim.of(row)


async def due_rows(connection: AsyncConnection, stage: Stage, attempts: int, limit: int) -> list[Claim]:
    """Return what is due in a stage without taking it."""
    rows = await connection.execute(
        select(*(work.c[name] for name in _CLAIM_COLUMNS))
        .where(work.c.stage == stage.name, work.c.run_at <= func.now(), work.c.dead_at.is_(None))
        .where(work.c.attempts < attempts)
        .order_by(work.c.run_at)
        .limit(limit)
    )
    return [Claim.of(row) for row in rows.mappings()]


_HELD = """
    SELECT w.id, w.generation FROM work w
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
        UPDATE work SET stage = 'embed', token = NULL, attempts = 0, run_at = now(), last_error = NULL
        FROM embeds WHERE work.id = embeds.id RETURNING work.id
    ), gone AS (
        DELETE FROM work USING held
        WHERE work.id = held.id AND held.id NOT IN (SELECT id FROM embeds) RETURNING work.id
    )
    SELECT count(*) FROM moved
    """  # noqa: S608  (constants only)
).bindparams(*_HELD_PARAMETERS)


async def confirm_indexed(connection: AsyncConnection, claims: Sequence[Claim]) -> int:
    """Move rows past the index stage where the claim still stands; return how many now wait to embed."""
    return int(await connection.scalar(_CONFIRM_INDEXED, _identities(claims)) or 0)


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
    connection: AsyncConnection, claim: Claim, error: str, delay: float, *, refund: bool
) -> None:
    """Give a claim back, due again in `delay` seconds; `refund` returns the attempt."""
    await connection.execute(
        update(work)
        .where(work.c.id == claim.id, work.c.token == claim.token)
        .values(
            token=None,
            run_at=func.now() + func.make_interval(0, 0, 0, 0, 0, 0, delay),
            attempts=work.c.attempts - (1 if refund else 0),
            last_error=error[:500],
        )
    )


async def extend(connection: AsyncConnection, claim: Claim, lease: float) -> None:
    """Hold a claim for `lease` seconds from now, if it still stands."""
    later = func.now() + func.make_interval(0, 0, 0, 0, 0, 0, lease)
    await connection.execute(
        update(work).where(work.c.id == claim.id, work.c.token == claim.token).values(run_at=later)
    )


async def give_back(connection: AsyncConnection, claims: Sequence[Claim]) -> None:
    """Return claims untouched, due at once, as when a worker stops."""
    for claim in claims:
        await postpone(connection, claim, "given back", 0, refund=True)


async def bury(connection: AsyncConnection, claim: Claim, error: str) -> None:
    """Mark a row dead with its reason: it is shown, and never claimed again by itself."""
    await connection.execute(
        update(work)
        .where(work.c.id == claim.id, work.c.token.is_not_distinct_from(claim.token))
        .values(token=None, dead_at=func.now(), last_error=error[:500])
    )


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


async def drop(
    connection: AsyncConnection, tenant: str, kind: Kind, refs: Sequence[str], track: Track
) -> None:
    """Forget what was left to do for records on one track; a claim on them loses its token."""
    await connection.execute(
        delete(work).where(
            owned_by(work, tenant), work.c.kind == kind, work.c.ref.in_(refs), work.c.track == track
        )
    )


async def due(connection: AsyncConnection) -> dict[str, int]:
    """Count what is due now, by stage."""
    rows = await connection.execute(
        select(work.c.stage, func.count().label("rows"))
        .where(work.c.dead_at.is_(None), work.c.run_at <= func.now())
        .group_by(work.c.stage)
    )
    return {row.stage: row.rows for row in rows}


async def pending(connection: AsyncConnection, tenant: str | None = None) -> list[RowMapping]:
    """Return {stage, waiting, running, dead, oldest_seconds} for each stage with rows."""
    alive, now = work.c.dead_at.is_(None), func.now()
    statement = select(
        work.c.stage,
        func.count().filter(alive).label("waiting"),
        func.count().filter(alive, work.c.token.is_not(None), work.c.run_at > now).label("running"),
        func.count().filter(~alive).label("dead"),
        func.coalesce(func.extract("epoch", now - func.min(work.c.created_at).filter(alive)), 0).label(
            "oldest_seconds"
        ),
    ).group_by(work.c.stage)
    if tenant is not None:
        statement = statement.where(owned_by(work, tenant))
    return list((await connection.execute(statement)).mappings())


async def count(connection: AsyncConnection, name: str, by: Mapping[str, float]) -> None:
    """Add to counters that every process shares; `by` maps a label to what to add."""
    for label, amount in sorted(by.items()):
        if amount:
            await connection.execute(_COUNT, {"name": name, "label": label, "amount": amount})


_COUNT = text(
    "INSERT INTO tally (name, label, total) VALUES (:name, :label, :amount)"
    " ON CONFLICT (name, label) DO UPDATE SET total = tally.total + excluded.total"
)


async def tallies(connection: AsyncConnection) -> list[RowMapping]:
    """Return every shared counter as {name, label, total}."""
    return list((await connection.execute(select(tally).order_by(literal(1)))).mappings())
