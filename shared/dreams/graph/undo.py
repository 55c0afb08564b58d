"""Undo what a run has changed in its graph: last things first, and only what nobody has changed since.

What a run has created is deleted with a tombstone, so that no later run brings it back. What it has
invalidated holds again, and is kept from the next run.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.dreams.graph.applied_graph import CREATED, WIDENED, state_of
from shared.infra.transaction import Transaction
from shared.lifecycle import delete_graph
from shared.memory.graph import entity_queries, source_queries, triple_queries
from shared.memory.graph.entity import MERGED, Entity
from shared.memory.graph.triple import Triple, TripleSource

Change = dict[str, Any]
_DELETED = "it was deleted since"
_CHANGED = "it was changed since"
_NAMED = "a caller or another triple names it"
_SAID = "another triple says the same by now"
_CLOSED = "the memory that says it stays closed"
# What somebody may have changed of an entity since a run has.
_COMPARED = ("aliases", "metadata")


@dataclass(slots=True)
class UndoneGraph:
    """The ids of what was restored, removed and narrowed, and why other records were kept."""

    restored: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    narrowed: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


async def undo(tx: Transaction, changes: Sequence[Change], closed_ids: Collection[str] = ()) -> UndoneGraph:
    """Undo the changes of a run, given in the order in which they were made.

    `closed_ids` are memories that the run has closed and that stay so: what they say does not hold.
    """
    undone = UndoneGraph()
    for change in reversed(changes):
        after = change["after"] or {}
        if not set(closed_ids).isdisjoint(after.get("memory_ids", ())):
            undone.kept[change["record_id"]] = _CLOSED
        elif change["record"] == "triple":
            await _undo_triple(tx, change, undone)
        else:
            await _undo_entity(tx, change, undone)
    return undone


async def _undo_triple(tx: Transaction, change: Change, undone: UndoneGraph) -> None:
    triple = (await triple_queries.lock(tx, [change["record_id"]])).get(change["record_id"])
    if triple is None:
        undone.kept[change["record_id"]] = _DELETED
    elif change["action"] == CREATED:
        await _remove_triple(tx, triple, change, undone)
    elif change["action"] == WIDENED:
        await _narrow_triple(tx, triple, change, undone)
    else:
        await _restore_triple(tx, triple, undone)


async def _remove_triple(tx: Transaction, triple: Triple, change: Change, undone: UndoneGraph) -> None:
    if not triple.is_derived:
        undone.kept[triple.id] = _CHANGED
        return
    # What came from a merged entity was said of that one, and of this one it may be said yet.
    await delete_graph.delete_triple_rows(tx, triple, entombs=change["reason"] != MERGED)
    undone.removed.append(triple.id)


async def _narrow_triple(tx: Transaction, triple: Triple, change: Change, undone: UndoneGraph) -> None:
    if change["before"] is None or triple.confidence != change["after"]["confidence"]:
        undone.kept[triple.id] = _CHANGED
        return
    await triple_queries.update_columns(tx, triple.id, change["before"])
    await _take_sources(tx, {"triple_id": triple.id}, change)
    undone.narrowed.append(triple.id)


async def _restore_triple(tx: Transaction, triple: Triple, undone: UndoneGraph) -> None:
    if triple.expired_at is None:
        undone.kept[triple.id] = _CHANGED
        return
    if await triple_queries.has_open_double(tx, triple):
        undone.kept[triple.id] = _SAID
        return
    await triple_queries.restore(tx, triple.id)
    undone.restored.append(triple.id)


async def _undo_entity(tx: Transaction, change: Change, undone: UndoneGraph) -> None:
    entity = await entity_queries.get(tx, change["record_id"], lock=True)
    if entity is None:
        undone.kept[change["record_id"]] = _DELETED
    elif change["action"] == CREATED:
        await _remove_entity(tx, entity, undone)
    elif change["action"] == WIDENED:
        await _narrow_entity(tx, entity, change, undone)
    elif entity.expired_at is None:
        undone.kept[entity.id] = _CHANGED
    else:
        await entity_queries.replace(tx, entity, {"expired_at": None, "reason": None, "is_kept": True})
        undone.restored.append(entity.id)


async def _remove_entity(tx: Transaction, entity: Entity, undone: UndoneGraph) -> None:
    if not entity.is_derived or await triple_queries.lock_of_entities(tx, [entity.id]):
        undone.kept[entity.id] = _NAMED
        return
    await delete_graph.delete_entity_rows(tx, entity)
    undone.removed.append(entity.id)


async def _narrow_entity(tx: Transaction, entity: Entity, change: Change, undone: UndoneGraph) -> None:
    before, after = change["before"], change["after"]
    present = state_of(entity)
    if before is None or any(after.get(name, present[name]) != present[name] for name in _COMPARED):
        undone.kept[entity.id] = _CHANGED
        return
    expired_at = before["expired_at"] and datetime.fromisoformat(before["expired_at"])
    await entity_queries.replace(tx, entity, before | {"expired_at": expired_at})
    await _take_sources(tx, {"entity_id": entity.id}, change)
    undone.narrowed.append(entity.id)


async def _take_sources(tx: Transaction, record: dict[str, str], change: Change) -> None:
    """Take back the sources that a change has added."""
    added = [TripleSource(**source) for source in change["after"].get("added_sources", ())]
    await source_queries.delete_sources(tx, record, added)
