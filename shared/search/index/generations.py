"""Manage index generations: which collections are written, and which one is read.

    (nothing) ──▶ live                              the first generation of a kind
    building  ──▶ live ──▶ retiring ──▶ (dropped)

A change of the embedding model, or `loci reindex`, creates a new generation next to the live one. From
then on every save is written to both, and existing records are enqueued as a backfill. The new generation
is promoted when nothing is missing: no backfill is left, and it has every record that the live
generation has. A generation stores its embedding model, so that the vector of a query is always compared
with vectors of the same model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from shared.foundation.stages import RecordKind
from shared.infra.transaction import FleetTransaction
from shared.jobs import index_jobs
from shared.search.index.table import index_generation as generation


@dataclass(frozen=True, slots=True)
class Generation:
    """One collection and the model of its vectors, which is None for keywords alone.

    `cosine_floor` is the level of unrelated records, learnt when there were `floor_points` points. Before
    that it is None and 0.
    """

    id: int
    kind: RecordKind
    collection: str
    state: str
    model: str | None
    dimension: int | None
    cosine_floor: float | None = None
    floor_points: int = 0

    def is_embedded_by(self, model: str | None, dimension: int | None) -> bool:
        """Tell whether the vectors are of this model. Both the name and the dimension must be equal."""
        return (self.model, self.dimension) == (model, dimension)


_LIST = select(generation).order_by(generation.c.id)
_LIST_OF_KIND = _LIST.where(generation.c.kind == bindparam("kind"))


async def list_generations(tx: FleetTransaction, kind: RecordKind | None = None) -> list[Generation]:
    """Return the generations of a kind, or of all kinds, oldest first. All of them are written."""
    rows = await tx.fetch(_LIST) if kind is None else await tx.fetch(_LIST_OF_KIND, {"kind": kind})
    return [_from_row(row) for row in rows]


def _from_row(row: Any) -> Generation:
    names = ("id", "collection", "state", "model", "dimension", "cosine_floor", "floor_points")
    return Generation(kind=RecordKind(row["kind"]), **{name: row[name] for name in names})


async def get_live(tx: FleetTransaction, kind: RecordKind) -> Generation | None:
    """Return the generation that is read, or None."""
    live_generations = [g for g in await list_generations(tx, kind) if g.state == "live"]
    return live_generations[0] if live_generations else None


async def create(
    tx: FleetTransaction, kind: RecordKind, prefix: str, model: str | None, dimension: int | None
) -> Generation:
    """Create a generation: `live` if it is the first of its kind, otherwise `building`.

    The caller must hold the lock of the generations exclusively, so that no save is in progress.
    """
    state = "building" if await get_live(tx, kind) else "live"
    values = {
        "kind": kind,
        "collection": f"{kind}-new",
        "state": state,
        "model": model,
        "dimension": dimension,
    }
    number = await tx.scalar(insert(generation).values(values).returning(generation.c.id))
    row = await tx.execute(
        update(generation)
        .where(generation.c.id == number)
        .values(collection=f"{prefix}_{kind}_{number}")
        .returning(generation)
    )
    return _from_row(row.mappings().one())


async def count_missing(tx: FleetTransaction, candidate: Generation, current: Generation) -> int:
    """Return the number of records that search would no longer find if `candidate` were promoted now."""
    return await index_jobs.count_missing(tx, candidate.id, current.id)


async def promote(tx: FleetTransaction, candidate: Generation, others: Sequence[Generation]) -> None:
    """Make a generation the live one and retire `others`, the remaining ones of its kind."""
    retiring = update(generation).where(generation.c.id.in_([g.id for g in others]))
    await tx.execute(retiring.values(state="retiring", retired_at=func.now()))
    await tx.execute(update(generation).where(generation.c.id == candidate.id).values(state="live"))


async def set_floor(tx: FleetTransaction, generation_id: int, floor: float | None, count: int) -> None:
    """Store the level of unrelated records, and the number of points from which it was learnt."""
    statement = update(generation).where(generation.c.id == generation_id)
    await tx.execute(statement.values(cosine_floor=floor, floor_points=count))


async def list_retired(tx: FleetTransaction, older_than: timedelta) -> list[Generation]:
    """Return the generations that were retired more than `older_than` ago, so that nobody reads them now."""
    is_unread = generation.c.retired_at < func.now() - older_than
    rows = await tx.execute(select(generation).where(generation.c.state == "retiring", is_unread))
    return [_from_row(row) for row in rows.mappings()]


async def delete_generation(tx: FleetTransaction, dropped: Generation) -> None:
    """Delete a generation whose collection was dropped, and its jobs."""
    await index_jobs.delete_of_generation(tx, dropped.id)
    await tx.execute(delete(generation).where(generation.c.id == dropped.id))
