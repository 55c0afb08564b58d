"""Write the triples of a batch of an import. Names that the scope does not see become its entities."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import uuid_utils

from shared.foundation import errors
from shared.foundation.origin import Channel, Origin
from shared.lifecycle.transfer import graph_entities, id_mapping, row_ids
from shared.lifecycle.transfer.graph_batch import GraphBatch, Overtaken
from shared.lifecycle.transfer.graph_lines import TripleLine
from shared.memory.graph import entity_queries, import_queries, merged, save, triple_queries
from shared.memory.graph.entity import EntityType
from shared.memory.graph.import_queries import SameKey, Times
from shared.memory.graph.names import fold

_COLUMNS = {
    *("predicate", "literal", "fact", "confidence", "valid_at", "invalid_at", "created_at", "expired_at"),
    *("reason", "previous_invalid_at", "is_derived", "is_kept"),
}
_OPEN = (None, None)
End = tuple[str, bool]
"""The name of an entity, and whether the line was invalidated: then it is the one of just this name."""


async def write(batch: GraphBatch) -> None:
    """Write the triples that the scope does not have. Raises Overtaken if others write them too."""
    ids = await _resolve_ends(batch)
    lines = [line for number, line in batch.triples if _has_names(batch, number, line, ids)]
    ids |= await _insert_missing(batch, lines, ids)
    new = await _without_known(batch, [(line, _key_of(line, ids)) for line in lines])
    used_ids = await import_queries.list_used_ids(batch.tx, "triple", {line.id for line, _ in new})
    rows: list[dict[str, Any]] = []
    for line, (subject_id, _, object_key) in new:
        id_ = graph_entities.free_id(line.id, used_ids)
        used_ids.add(id_)
        object_id = None if line.object is None else object_key
        ends = {"subject_id": subject_id, "object_id": object_id, "object_key": object_key}
        trust = line.origin_trust or batch.importer.trust
        origin = Origin(channel=Channel.IMPORT, trust=trust).imported(batch.importer)
        rows.append(line.model_dump(include=_COLUMNS) | ends | origin.columns() | {"id": id_})
        batch.part.created += 1
        if id_ != line.id:
            batch.part.remapped[line.id] = id_
    if len(await import_queries.insert_triples(batch.tx, batch.scope, rows)) < len(rows):
        raise Overtaken
    await _insert_sources(batch, {row["id"]: line for row, (line, _) in zip(rows, new, strict=True)})


async def _without_known(
    batch: GraphBatch, keyed: Sequence[tuple[TripleLine, SameKey]]
) -> list[tuple[TripleLine, SameKey]]:
    """Return the lines that say what neither the scope nor an earlier line says at these times."""
    times = await import_queries.list_times(batch.tx, batch.scope, (key for _, key in keyed))
    new: list[tuple[TripleLine, SameKey]] = []
    for line, key in keyed:
        if _is_there(line.times, times[key]):
            batch.part.skipped += 1
        else:
            times[key].append(line.times)
            new.append((line, key))
    return new


def _ends(line: TripleLine) -> Iterator[tuple[str, End, EntityType | None]]:
    """Yield subject and object with their fields and types; a literal is no end."""
    is_over = line.expired_at is not None
    yield "subject", (line.subject, is_over), line.subject_type
    if line.object is not None:
        yield "object", (line.object, is_over), line.object_type


async def _resolve_ends(batch: GraphBatch) -> dict[End, str]:
    """Return the ids of the entities that the lines name; these are there until the transaction ends.

    What was said of an entity before it was merged stays there if it is over, and else it is said of the one
    that was kept.
    """
    tx, scope = batch.tx, batch.scope
    ends = {end for _, line in batch.triples for _, end, _ in _ends(line)}
    named = sorted({name for name, _ in ends})
    by_folded = await entity_queries.resolve_names(tx, scope, named)
    over = {fold(name) for name, is_over in ends if is_over}
    of_just_this_name = await import_queries.list_ids_named(tx, scope, over)
    candidates = sorted({*named, *by_folded.values(), *of_just_this_name.values()})
    existing = await entity_queries.lock_shared(tx, candidates)
    visible = {id_: entity for id_, entity in existing.items() if entity.is_seen_by(scope)}
    ids: dict[End, str] = {}
    for name, is_over in sorted(ends):
        id_ = of_just_this_name.get(fold(name)) if is_over else None
        entity = visible.get(name) or visible.get(id_ or by_folded.get(fold(name), ""))
        if entity is not None and not is_over:
            entity = await merged.find_kept(tx, entity, shared=True) or entity
        if entity is not None:
            ids[name, is_over] = entity.id
    return ids


def _has_names(batch: GraphBatch, number: int, line: TripleLine, ids: Mapping[End, str]) -> bool:
    """Return whether each end has or can get an entity; refuse the line if one is the id of none."""
    try:
        for field, end, _ in _ends(line):
            if end not in ids:
                save.require_name(field, end[0])
    except errors.Invalid as error:
        batch.refuse(number, str(error))
        return False
    return True


async def _insert_missing(
    batch: GraphBatch, lines: Sequence[TripleLine], ids: Mapping[End, str]
) -> dict[End, str]:
    """Insert the entities that the scope does not see, and return their ids by the names in the lines."""
    rows: dict[str, dict[str, Any]] = {}
    by_name: dict[End, str] = {}
    for line in lines:
        for _, end, type_ in _ends(line):
            if end in ids:
                continue
            name, _ = end
            row = {"id": str(uuid_utils.uuid7()), "name": name, "type": type_ or EntityType.TOPIC}
            more = {"aliases": [], "metadata": {}, "is_derived": line.is_derived, "is_kept": False}
            by_name[end] = rows.setdefault(fold(name), row | more)["id"]
    await graph_entities.insert_all(batch, list(rows.values()))
    return by_name


def _key_of(line: TripleLine, ids: Mapping[End, str]) -> SameKey:
    ends = {field: ids[end] for field, end, _ in _ends(line)}
    return ends["subject"], line.predicate, triple_queries.object_key(ends.get("object"), line.literal)


def _is_there(times: Times, known: list[Times]) -> bool:
    """Return whether a triple that says the same holds at these times; of open ones there is only one."""
    is_open = times[1:] == _OPEN
    return times in known or (is_open and any(other[1:] == _OPEN for other in known))


async def _insert_sources(batch: GraphBatch, lines: Mapping[str, TripleLine]) -> None:
    """Store the sources of triples by id, under the ids that sessions and memories were imported with."""
    tx, scope = batch.tx, batch.scope
    sources = [(id_, source) for id_, line in lines.items() for source in line.sources]
    session_ids = {source.session_id for _, source in sources if source.session_id}
    memory_ids = {source.memory_id for _, source in sources if source.memory_id}
    sessions = await row_ids.find_moved_sessions(tx, scope, session_ids) if session_ids else {}
    memories = await id_mapping.map_ids(tx, scope, memory_ids) if memory_ids else {}
    rows = [
        {
            "triple_id": id_,
            "session_id": sessions.get(source.session_id or "", source.session_id),
            "seq": source.seq,
            "memory_id": memories.get(source.memory_id or "", source.memory_id),
        }
        for id_, source in sources
    ]
    await import_queries.insert_sources(tx, rows)
