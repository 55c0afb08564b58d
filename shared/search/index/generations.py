"""Generations: which collections are written, which one is read, and how one follows another.

    (nothing) ──▶ live                      the first of its kind
    building ──▶ live ──▶ retiring ──▶ (dropped)

A change of the embedding model, or `loci reindex`, begins a new generation beside the live one.
Every save from then on is written to both; what was there before is made due as backfill. The
new one is promoted when nothing of it is behind: no backfill left, and no record that the live
generation could find and the new one could not. A generation knows its model, so that a query's
vector always meets vectors of its own kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.stages import RecordKind
from shared.search.index.table import index_generation as generation


@dataclass(frozen=True, slots=True)
class Generation:
    """One collection and the model (None: keywords only) whose vectors it holds."""

    id: int
    kind: RecordKind
    collection: str
    state: str
    model: str | None
    dimension: int | None

    def is_embedded_by(self, model: str | None, dimension: int | None) -> bool:
        """Tell whether the vectors held here are this model's: a name alone does not tell, nor a size."""
        return (self.model, self.dimension) == (model, dimension)


async def list_generations(connection: AsyncConnection, kind: RecordKind | None = None) -> list[Generation]:
    """Return the generations that are written, oldest first."""
    statement = select(generation).order_by(generation.c.id)
    if kind is not None:
        statement = statement.where(generation.c.kind == kind)
    return [_read(row) for row in (await connection.execute(statement)).mappings()]


def _read(row: Any) -> Generation:
    fields = {name: row[name] for name in ("id", "collection", "state", "model", "dimension")}
    return Generation(kind=RecordKind(row["kind"]), **fields)


async def live(connection: AsyncConnection, kind: RecordKind) -> Generation | None:
    """Return the generation that is read."""
    found = [g for g in await list_generations(connection, kind) if g.state == "live"]
    return found[0] if found else None


async def create(
    connection: AsyncConnection, kind: RecordKind, prefix: str, model: str | None, dimension: int | None
) -> Generation:
    """Begin a generation: live at once when it is the first, else building.

    The caller holds the generations' lock exclusively, so no save is in flight.
    """
    state = "building" if await live(connection, kind) else "live"
    values = {
        "kind": kind,
        "collection": f"{kind}-new",
        "state": state,
        "model": model,
        "dimension": dimension,
    }
    number = await connection.scalar(insert(generation).values(values).returning(generation.c.id))
    row = await connection.execute(
        update(generation)
        .where(generation.c.id == number)
        .values(collection=f"{prefix}_{kind}_{number}")
        .returning(generation)
    )
    return _read(row.mappings().one())


_BEHIND = text(
    """
    SELECT count(*) FROM job w
    WHERE w.generation = :candidate AND w.pipeline = 'index' AND w.dead_at IS NULL
      AND (w.backfill OR (w.stage = 'index' AND NOT EXISTS (
            SELECT FROM job o WHERE o.tenant = w.tenant AND o.kind = w.kind AND o.record_id = w.record_id
              AND o.pipeline = 'index' AND o.generation = :live AND o.stage = 'index')))
    """
)


async def count_missing(connection: AsyncConnection, candidate: Generation, current: Generation) -> int:
    """Count the records that a building generation would lose if it were promoted now."""
    values = {"candidate": candidate.id, "live": current.id}
    return int(await connection.scalar(_BEHIND, values) or 0)


async def promote(connection: AsyncConnection, candidate: Generation, others: Sequence[Generation]) -> None:
    """Make a generation the one that is read; retire the others of its kind."""
    retiring = update(generation).where(generation.c.id.in_([g.id for g in others]))
    await connection.execute(retiring.values(state="retiring", retired_at=func.now()))
    await connection.execute(update(generation).where(generation.c.id == candidate.id).values(state="live"))


async def retired(connection: AsyncConnection, older_than: timedelta) -> list[Generation]:
    """Return generations that nobody can be reading any more."""
    past = generation.c.retired_at < func.now() - older_than
    rows = await connection.execute(select(generation).where(generation.c.state == "retiring", past))
    return [_read(row) for row in rows.mappings()]


async def delete_generation(connection: AsyncConnection, gone: Generation) -> None:
    """Delete a dropped generation's row and what was left to do for it."""
    await connection.execute(text("DELETE FROM job WHERE generation = :id"), {"id": gone.id})
    await connection.execute(delete(generation).where(generation.c.id == gone.id))
