"""Write the entities of a batch of an import: new ones, and what those that are there lack."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import uuid_utils

from shared.foundation import errors
from shared.lifecycle.transfer.graph_batch import GraphBatch, Overtaken
from shared.lifecycle.transfer.graph_lines import EntityLine
from shared.memory.graph import import_queries, merged, save
from shared.memory.graph.entity import Entity
from shared.memory.graph.names import fold

_COLUMNS = {
    *("type", "aliases", "metadata", "is_derived", "created_at", "updated_at", "last_referenced_at"),
    *("expired_at", "reason", "is_kept"),
}


async def write(batch: GraphBatch) -> None:
    """Write the entities, of which no two have the same name. Raises Overtaken if others write them too."""
    existing = await _lock_existing(batch)
    present = {entity.id: entity for entity in existing.values()}
    changed: dict[str, Entity] = {}
    new: list[EntityLine] = []
    for number, line in batch.entities:
        if (named := existing.get(fold(line.name))) is None:
            new.append(line)
            continue
        before = present[named.id]
        if (after := _joined(batch, number, before, line)) is not None:
            batch.part.updated += after != before
            batch.part.skipped += after == before
            present[after.id] = after
            changed |= {after.id: after} if after != before else {}
    await import_queries.update_entities(batch.tx, batch.scope, list(changed.values()))
    await _insert(batch, new)


async def _lock_existing(batch: GraphBatch) -> dict[str, Entity]:
    """Return the locked entities of the lines that are there, by folded name.

    Of one that was merged into another one since the export, it is that one.
    """
    live = {fold(line.name): line.expired_at is None for _, line in batch.entities}
    existing = await import_queries.lock_named(batch.tx, batch.scope, live)
    for folded, entity in existing.items():
        if live[folded]:
            existing[folded] = await merged.find_kept(batch.tx, entity) or entity
    return existing


def _joined(batch: GraphBatch, number: int, before: Entity, line: EntityLine) -> Entity | None:
    draft = line.draft
    if fold(line.name) != fold(before.name):  # it was merged: of the two, the kept one's own is right
        own = {"type": None, "metadata": draft.metadata | before.metadata}
        draft = merged.under_name(before.name, draft.model_copy(update=own))
    try:
        return save.joined(before, draft, derived=line.is_derived, revives=line.expired_at is None)
    except errors.LimitReached as error:
        batch.refuse(number, str(error))
        return None


async def _insert(batch: GraphBatch, lines: Sequence[EntityLine]) -> None:
    used_ids = await import_queries.list_used_ids(batch.tx, "entity", {line.id for line in lines})
    rows: list[dict[str, Any]] = []
    for line in lines:
        id_ = free_id(line.id, used_ids)
        used_ids.add(id_)
        rows.append(line.model_dump(include=_COLUMNS) | {"id": id_, "name": line.name})
        batch.part.created += 1
        if id_ != line.id:
            batch.part.remapped[line.id] = id_
    await insert_all(batch, rows)


async def insert_all(batch: GraphBatch, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert entities. Raises Overtaken if the scope has one of their names by now."""
    inserted = await import_queries.insert_entities(batch.tx, batch.scope, rows)
    if len(inserted) < len(rows):
        raise Overtaken


def free_id(line_id: str, used_ids: Collection[str]) -> str:
    """Return the id of a line, or a new one if another record of the tenant has it."""
    return str(uuid_utils.uuid7()) if line_id in used_ids else line_id
