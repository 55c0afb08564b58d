"""Export the graph of a scope, and import it: entities by name, triples by what they say and when.

An import restores: what is there already is skipped, an entity gets the aliases and metadata that it lacks,
and what a caller has deleted is refused unless the import restores it.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy.exc import IntegrityError

from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.lifecycle import erasure_queries
from shared.lifecycle.transfer import graph_entities, graph_lines, graph_triples
from shared.lifecycle.transfer.graph_batch import GraphBatch, Overtaken
from shared.lifecycle.transfer.graph_lines import EntityLine, GraphLine, TripleLine
from shared.lifecycle.transfer.import_rows import Target
from shared.lifecycle.transfer.parsing_thread import in_thread
from shared.lifecycle.transfer.row_kind import LineKind
from shared.lifecycle.transfer.scope_report import ScopeReport
from shared.memory.graph import entity_queries, tombstones, triple_queries
from shared.memory.graph.names import fold
from shared.platform.resources import Resources

_PAGE = 500
_BATCH = 1000
_MAX_ATTEMPTS = 5
_DELETED = "was deleted on purpose"
MODELS: dict[LineKind, type[GraphLine]] = {
    LineKind.GRAPH_ENTITY: EntityLine,
    LineKind.GRAPH_TRIPLE: TripleLine,
}
Numbered = tuple[int, GraphLine]
"""A line with its number in the upload."""


async def export(resources: Resources, scope: Scope, kind: LineKind) -> AsyncIterator[bytes]:
    """Yield the entities or the triples of exactly this scope as lines, also those that are over."""
    after = ""
    while True:
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            lines, after = await _read_page(tx, scope, kind, after)
        for line in lines:
            yield line
        if len(lines) < _PAGE:
            return


async def _read_page(tx: Transaction, scope: Scope, kind: LineKind, after: str) -> tuple[list[bytes], str]:
    if kind is LineKind.GRAPH_ENTITY:
        entities = await entity_queries.list_scope_page(tx, scope, after, _PAGE)
        return [graph_lines.write_entity(entity) for entity in entities], entities[-1].id if entities else ""
    triples = await triple_queries.list_scope_page(tx, scope, after, _PAGE)
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
    async for numbered in in_thread(_batches(_parse(kind, lines, report))):
        batch = await _import_batch(target, numbered, restore=restore)
        report.of(kind).add(batch.part)
        for rule, numbers in batch.refused.items():
            report.refuse(numbers, kind, rule)


def _batches(parsed: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Group lines into batches without two entities of one name: a later line follows the earlier."""
    batch: list[Numbered] = []
    folded_names: set[str] = set()
    for number, line in parsed:
        folded = fold(line.name) if isinstance(line, EntityLine) else None
        if folded in folded_names or len(batch) == _BATCH:
            yield batch
            batch, folded_names = [], set()
        batch.append((number, line))
        folded_names |= {folded} if folded is not None else set()
    if batch:
        yield batch


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


async def _import_batch(target: Target, numbered: Sequence[Numbered], *, restore: bool) -> GraphBatch:
    for _ in range(_MAX_ATTEMPTS):
        with suppress(IntegrityError, Overtaken):  # somebody else saved or deleted one of them meanwhile
            return await _import_once(target, numbered, restore=restore)
    raise errors.Busy("others are writing this graph; what was imported so far is stored: try again")


@repeated_after_deadlock
async def _import_once(target: Target, numbered: Sequence[Numbered], *, restore: bool) -> GraphBatch:
    async with target.resources.postgres.for_tenant(target.scope.tenant) as tx:
        await erasure_queries.require_not_erased(tx, target.scope, target.erasures)
        batch = GraphBatch(tx, target.scope, target.caller.origin)
        kept = await _without_deleted(batch, numbered, restore=restore)
        batch.entities = [(number, line) for number, line in kept if isinstance(line, EntityLine)]
        batch.triples = [(number, line) for number, line in kept if isinstance(line, TripleLine)]
        if batch.entities:
            await graph_entities.write(batch)
        if batch.triples:
            await graph_triples.write(batch)
    return batch


async def _without_deleted(
    batch: GraphBatch, numbered: Sequence[Numbered], *, restore: bool
) -> list[Numbered]:
    """Return the lines of what no caller has deleted; with `restore`, all, and nothing is deleted then."""
    known = await tombstones.known_names(batch.tx, batch.scope, _ends_of(numbered))
    words = {number: _words(line, known) for number, line in numbered}
    said = {item for items in words.values() for item in items}
    if restore:
        await tombstones.remove(batch.tx, batch.scope, said)
        return list(numbered)
    deleted = await tombstones.find_deleted(batch.tx, batch.scope, said)
    for number, _ in numbered:
        if deleted.intersection(words[number]):
            batch.refuse(number, _DELETED)
    return [(number, line) for number, line in numbered if not deleted.intersection(words[number])]


def _ends_of(numbered: Sequence[Numbered]) -> set[str]:
    """Return the names and ids of entities between which triples are."""
    triples = [line for _, line in numbered if isinstance(line, TripleLine)]
    return {name for line in triples for name in (line.subject, line.object) if name is not None}


def _words(line: GraphLine, known: Mapping[str, Sequence[str]]) -> set[tombstones.Words]:
    if isinstance(line, TripleLine):
        object_ = line.object or line.literal or ""
        return tombstones.words_of_triple(line.subject, line.predicate, object_, known)
    return {(name,) for name in (line.name, *line.aliases)} if isinstance(line, EntityLine) else set()
