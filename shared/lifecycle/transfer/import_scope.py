"""Import an export of a scope: lines of every kind, in any order but for one rule.

The line of a session comes before the lines of what belongs to it, as in an export. Lines are stored in
batches, each in one transaction, and all go by id: an import that was killed half-way is simply sent again,
and an export over the limit of an upload is sent in parts.
"""

import tempfile
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.lifecycle import erasure_queries
from shared.lifecycle.transfer import graph, memory_lines, ndjson, row_lines, upload
from shared.lifecycle.transfer.export_scope import may_reach
from shared.lifecycle.transfer.import_rows import Target, import_rows
from shared.lifecycle.transfer.import_sessions import import_session
from shared.lifecycle.transfer.line_kinds import ROW_KINDS
from shared.lifecycle.transfer.ndjson import MemoryLine
from shared.lifecycle.transfer.parsing_thread import in_thread
from shared.lifecycle.transfer.row_kind import GRAPH_KINDS, LineKind, RowKind
from shared.lifecycle.transfer.row_owners import RowLine
from shared.lifecycle.transfer.scope_report import ScopeReport
from shared.platform.auth.rights import Action
from shared.platform.resources import Resources

# A file of an agent has a megabyte, and a turn with every character escaped 1.5; both grow in a line.
MAX_LINE_BYTES = 4 * 1024 * 1024
_BATCH = 200
_MAX_BATCH_BYTES = 500_000
_OF_AGENT = "belongs to the agent: import it without a user, with a key that may write the agent"


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the upload, of which only the kind is known to be valid."""

    number: int
    kind: LineKind
    raw: bytes


async def import_scope(
    resources: Resources,
    caller: Caller,
    scope: Scope,
    chunks: AsyncIterator[bytes],
    *,
    restore: bool,
    kinds: Collection[LineKind] = tuple(LineKind),
) -> dict[str, Any]:
    """Import lines of these kinds, which arrive in chunks of any size, and return the report.

    With `restore`, what was deleted on purpose is imported too. Raises errors.TooLarge, with nothing stored,
    for more than 32 MiB, 100 000 lines, or 4 MiB in one line; errors.Conflict if the user or agent is erased
    meanwhile: what is not stored by then is dropped.
    """
    target = await _target(resources, caller, scope, restore=restore)
    with tempfile.SpooledTemporaryFile(upload.MAX_IN_MEMORY_BYTES) as spool:
        await upload.receive_upload(chunks, spool, MAX_LINE_BYTES)
        return await _import_lines(target, spool, kinds=kinds)


async def import_lines(
    resources: Resources, caller: Caller, scope: Scope, raw_lines: Iterable[bytes], *, restore: bool
) -> dict[str, Any]:
    """Import any number of lines, and return the report. Raises errors.Conflict as `import_scope` does."""
    return await _import_lines(await _target(resources, caller, scope, restore=restore), raw_lines)


async def _target(resources: Resources, caller: Caller, scope: Scope, *, restore: bool) -> Target:
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        erasures = await erasure_queries.list_last(tx, scope)
        return Target(resources, caller, scope, erasures, restore)


async def _import_lines(
    target: Target, raw_lines: Iterable[bytes], *, kinds: Collection[LineKind] = tuple(LineKind)
) -> dict[str, Any]:
    report = ScopeReport()
    by_kind = groupby(_read_lines(raw_lines, report, kinds), attrgetter("kind"))
    async for kind, lines in in_thread(by_kind):
        if kind is LineKind.MEMORY:
            await _import_memories(target, lines, report)
        elif kind in GRAPH_KINDS:
            numbered = ((line.number, line.raw) for line in lines)
            await graph.import_lines(target, kind, numbered, report, restore=target.restore)
        else:
            await _import_rows(target, ROW_KINDS[kind], lines, report)
    return report.as_json()


def _read_lines(
    raw_lines: Iterable[bytes], report: ScopeReport, kinds: Collection[LineKind]
) -> Iterator[_Line]:
    """Read lines, and add those that are no objects of one of the kinds to the report."""
    for number, raw in ndjson.numbered_lines(raw_lines):
        try:
            yield _Line(number, _kind_of(raw, kinds), raw)
        except errors.Invalid as error:
            report.malformed.append({"line": number, "rule": str(error)})


def _kind_of(raw: bytes, kinds: Collection[LineKind]) -> LineKind:
    if len(raw) > MAX_LINE_BYTES:
        raise errors.TooLarge("line", f"must be at most {MAX_LINE_BYTES} bytes")
    name = ndjson.load_object(raw).get("kind", LineKind.MEMORY)
    if not isinstance(name, str) or name not in {*kinds}:
        raise errors.Invalid("kind", f"must be one of {', '.join(kinds)}")
    return LineKind(name)


async def _import_memories(target: Target, lines: Iterable[_Line], report: ScopeReport) -> None:
    def parsed() -> Iterator[MemoryLine]:
        for line in lines:
            try:
                yield ndjson.parse_line(line.raw).numbered(line.number)
            except errors.Invalid as error:
                report.malformed.append({"line": line.number, "rule": str(error)})

    await memory_lines.import_lines(
        target.resources,
        target.scope,
        target.caller,
        parsed(),
        report.memories,
        target.erasures,
        restore=target.restore,
        moves_sessions=True,
    )


async def _import_rows(target: Target, kind: RowKind, lines: Iterable[_Line], report: ScopeReport) -> None:
    may_write_agent = may_reach(target.caller, target.scope, Action.WRITE)
    async for batch in in_thread(_batches(_parse_rows(kind, lines, report), target.scope)):
        if batch[0].is_of_agent and not may_write_agent:
            report.refuse([line.number for line in batch], kind.name, _OF_AGENT)
        elif kind.name is LineKind.SESSION:
            for line in batch:
                await import_session(target, line, report)
        else:
            await import_rows(target, batch, report)


def _parse_rows(kind: RowKind, lines: Iterable[_Line], report: ScopeReport) -> Iterator[tuple[RowLine, int]]:
    """Yield the lines with their sizes, and add those that are malformed to the report."""
    for line in lines:
        try:
            yield RowLine(line.number, kind, row_lines.parse_row(kind, line.raw)), len(line.raw)
        except errors.Invalid as error:
            report.malformed.append({"line": line.number, "rule": str(error)})


def _batches(lines: Iterable[tuple[RowLine, int]], scope: Scope) -> Iterator[list[RowLine]]:
    """Group lines into batches of one kind of owner, without equal keys: a later line follows the earlier."""
    batch: dict[Any, RowLine] = {}
    total = 0
    for line, size in lines:
        key = line.key(scope)
        is_other = any(line.is_of_agent != other.is_of_agent for other in list(batch.values())[:1])
        if is_other or key in batch or len(batch) == _BATCH or total > _MAX_BATCH_BYTES:
            yield list(batch.values())
            batch, total = {}, 0
        batch[key] = line
        total += size
    if batch:
        yield list(batch.values())
