"""Export the graph of a scope, and import it: entities by name, triples by what they say and when.

An import restores: what is there already is skipped, an entity gets the aliases and metadata that it lacks,
and what a caller has deleted is refused unless the import restores it.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.lifecycle import erasure_queries
from shared.lifecycle.transfer import graph_lines, id_mapping, row_ids
from shared.lifecycle.transfer.graph_lines import EntityLine, GraphLine, TripleLine
from shared.lifecycle.transfer.import_rows import Target
from shared.lifecycle.transfer.row_kind import LineKind
from shared.lifecycle.transfer.scope_report import KindReport, ScopeReport
from shared.memory.graph import entity_queries, save, tombstones, triple_queries
from shared.memory.graph.triple import Triple, TripleSource
from shared.platform.resources import Resources

_PAGE = 500
_BATCH = 100
_MAX_ATTEMPTS = 5
_DELETED = "was deleted on purpose"
MODELS: dict[LineKind, type[GraphLine]] = {
    LineKind.GRAPH_ENTITY: EntityLine,
    LineKind.GRAPH_TRIPLE: TripleLine,
}
Numbered = tuple[int, GraphLine]
"""A line with its number in the upload."""


@dataclass(slots=True)
class _Batch:
    """What one transaction did; `refused` are numbers of lines by the rule that they break."""

    part: KindReport
    refused: dict[str, list[int]]

    def refuse(self, number: int, rule: str) -> None:
        self.refused.setdefault(rule, []).append(number)


async def export(resources: Resources, scope: Scope, kind: LineKind) -> AsyncIterator[bytes]:
    """Yield the entities or the triples of exactly this scope as lines, also those that are over."""
    after = ""
    while True:
        async with resources.postgres.for_tenant(scope.tenant) as connection:
            lines, after = await _read_page(connection, scope, kind, after)
        for line in lines:
            yield line
        if len(lines) < _PAGE:
            return


async def _read_page(
    connection: AsyncConnection, scope: Scope, kind: LineKind, after: str
) -> tuple[list[bytes], str]:
    if kind is LineKind.GRAPH_ENTITY:
        entities = await entity_queries.list_scope_page(connection, scope, after, _PAGE)
        return [graph_lines.write_entity(entity) for entity in entities], entities[-1].id if entities else ""
    triples = await triple_queries.list_scope_page(connection, scope, after, _PAGE)
    return [graph_lines.write_triple(triple) for triple in triples], triples[-1].id if triples else ""


async def import_lines(
    target: Target,
    kind: LineKind,
    lines: Iterable[tuple[int, bytes]],
    report: ScopeReport,
    *,
    restore: bool,
) -> None:
    """Import numbered lines of one kind, and add to the report.

    Raises errors.Busy if others keep writing the same names, and errors.Conflict if the user or agent was
    erased since the import began.
    """
    parsed = _parse(kind, lines, report)
    while numbered := list(islice(parsed, _BATCH)):
        batch = await _import_batch(target, numbered, restore=restore)
        report.of(kind).add(batch.part)
        for rule, numbers in batch.refused.items():
            report.refuse(numbers, kind, rule)


def _parse(kind: LineKind, lines: Iterable[tuple[int, bytes]], report: ScopeReport) -> Iterator[Numbered]:
    for number, raw in lines:
        try:
            line = graph_lines.parse(MODELS[kind], raw)
            line = line.model_copy(update=dict(_checked_fields(line)))
        except errors.Invalid as error:
            report.malformed.append({"line": number, "rule": str(error)})
            continue
        yield number, line


def _checked_fields(line: GraphLine) -> Iterator[tuple[str, Any]]:
    draft = line.draft if isinstance(line, EntityLine | TripleLine) else None
    for name in draft.model_fields_set if draft else ():
        yield name, getattr(draft, name)


async def _import_batch(target: Target, numbered: Sequence[Numbered], *, restore: bool) -> _Batch:
    for _ in range(_MAX_ATTEMPTS):
        with suppress(IntegrityError):  # somebody else saved or deleted one of them meanwhile
            return await _import_once(target, numbered, restore=restore)
    raise errors.Busy("others are writing this graph; what was imported so far is stored: try again")


@repeated_after_deadlock
async def _import_once(target: Target, numbered: Sequence[Numbered], *, restore: bool) -> _Batch:
    batch = _Batch(KindReport(), {})
    async with target.resources.postgres.for_tenant(target.scope.tenant) as connection:
        await erasure_queries.require_not_erased(connection, target.scope, target.erasures)
        await _write(connection, target.scope, numbered, batch, restore=restore)
    return batch


async def _write(
    connection: AsyncConnection, scope: Scope, numbered: Sequence[Numbered], batch: _Batch, *, restore: bool
) -> None:
    words = {number: _words(line) for number, line in numbered}
    named = {item for items in words.values() for item in items}
    if restore:
        await tombstones.remove(connection, scope, named)
    deleted = set() if restore else await tombstones.find_deleted(connection, scope, named)
    for number, line in numbered:
        if deleted.intersection(words[number]):
            batch.refuse(number, _DELETED)
        elif isinstance(line, EntityLine):
            await _write_entity(connection, scope, number, line, batch)
        elif isinstance(line, TripleLine):
            await _write_triple(connection, scope, line, batch.part)


def _words(line: GraphLine) -> list[tombstones.Words]:
    if isinstance(line, TripleLine):
        object_ = line.object or line.literal or ""
        return [(line.subject,), (object_,), (line.subject, line.predicate, object_)]
    return [(line.name,)] if isinstance(line, EntityLine) else []


async def _write_entity(
    connection: AsyncConnection, scope: Scope, number: int, line: EntityLine, batch: _Batch
) -> None:
    before = await entity_queries.lock_named(connection, scope, line.name)
    if before is not None:
        try:
            after = await save.upsert_entity(
                connection, scope, line.draft, derived=line.is_derived, revives=line.expired_at is None
            )
        except errors.LimitReached as error:
            batch.refuse(number, str(error))
            return
        batch.part.updated += after != before
        batch.part.skipped += after == before
        return
    columns = line.model_dump(exclude={"kind", "id", "name", "aliases"}) | {"aliases": list(line.aliases)}
    own_id = await entity_queries.get(connection, scope.tenant, line.id) is None
    created = await entity_queries.insert_new(
        connection, scope, line.name, columns | ({"id": line.id} if own_id else {})
    )
    if created is None:
        raise errors.Busy("others are writing this graph: try again")
    batch.part.created += 1
    if not own_id:
        batch.part.remapped[line.id] = created.id


async def _write_triple(
    connection: AsyncConnection, scope: Scope, line: TripleLine, part: KindReport
) -> None:
    ends = await save.resolve_ends(connection, scope, line.draft, derived=line.is_derived, revives=False)
    key = triple_queries.object_key(ends.object_id, line.literal)
    same = await triple_queries.list_same(connection, scope, ends.subject_id, line.predicate, key)
    if any(_is_same(triple, line) for triple in same):
        part.skipped += 1
        return
    more = line.model_dump(
        include={"created_at", "expired_at", "reason", "previous_invalid_at", "is_derived"}
    )
    own_id = await triple_queries.get(connection, scope.tenant, line.id) is None
    draft = line.draft
    triple_id, _ = await triple_queries.upsert(
        connection, scope, draft, ends.subject_id, ends.object_id, more | ({"id": line.id} if own_id else {})
    )
    sources = await _moved_sources(connection, scope, line.sources)
    await triple_queries.add_sources(connection, scope.tenant, {"triple_id": triple_id}, sources)
    part.created += 1
    if not own_id:
        part.remapped[line.id] = triple_id


def _is_same(triple: Triple, line: TripleLine) -> bool:
    is_open = triple.invalid_at is None and triple.expired_at is None
    if is_open and line.invalid_at is None and line.expired_at is None:
        return True
    return (triple.valid_at, triple.invalid_at, triple.expired_at) == line.times


async def _moved_sources(
    connection: AsyncConnection, scope: Scope, sources: Sequence[TripleSource]
) -> list[TripleSource]:
    """Return the sources under the ids that sessions and memories were imported with."""
    session_ids = {source.session_id for source in sources if source.session_id}
    memory_ids = {source.memory_id for source in sources if source.memory_id}
    sessions = await row_ids.find_moved_sessions(connection, scope, session_ids) if session_ids else {}
    memories = await id_mapping.map_ids(connection, scope, memory_ids) if memory_ids else {}
    return [
        source.model_copy(
            update={
                "session_id": sessions.get(source.session_id or "", source.session_id),
                "memory_id": memories.get(source.memory_id or "", source.memory_id),
            }
        )
        for source in sources
    ]
