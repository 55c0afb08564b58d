"""Take a scope's long-term memory out, and in again (LT14).

A scope is taken exactly: the agent's entries of one user, or its common ones when no user is
named. Archived entries come along; history and tombstones don't, for they tell of this place.
Export reads page by page, a transaction each, so a slow reader holds nothing open; an entry that
changes meanwhile is shown as its page found it.

Import is by id. Lines are stored in batches, each in one transaction; a repeated import changes
nothing, so what broke off is simply sent again. Lines that say what another entry says are tried
again as long as changes free facts: their order in the file must not matter.
"""

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.lifecycle.transfer import id_mapping, import_batch, import_turns, ndjson, rockbot, upload
from shared.lifecycle.transfer.import_report import Report
from shared.lifecycle.transfer.ndjson import MemoryLine
from shared.memory.longterm import scope_queries
from shared.platform.resources import Resources

_PAGE = 500
_BATCH = 200
# Indexing long texts takes this process a while, in which it serves nobody else.
_BATCH_CHARACTERS = 200_000
_ROUNDS = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


async def export(resources: Resources, scope: Scope) -> AsyncIterator[bytes]:
    """Yield each entry of exactly this scope as a line of JSON with its line break."""
    after = ""
    while True:
        async with resources.postgres.for_tenant(scope.tenant) as connection:
            entries = await scope_queries.list_page(connection, scope, after, _PAGE)
        for entry in entries:
            yield ndjson.write_line(entry)
        if len(entries) < _PAGE:
            return
        after = entries[-1].id


async def import_stream(
    resources: Resources, scope: Scope, actor: str, chunks: AsyncIterator[bytes], *, restore: bool
) -> dict[str, Any]:
    """Import lines that come in chunks, cut anywhere, and return the report.

    `restore` brings back what was deleted on purpose, too. Raises errors.TooLarge, with nothing
    stored, over 32 MiB or 100 000 lines in all or 1 MiB in one line.
    """
    with tempfile.SpooledTemporaryFile(upload.IN_MEMORY) as spool:
        await upload.receive_upload(chunks, spool)
        return (await import_lines(resources, scope, actor, spool, restore=restore)).as_json()


async def import_lines(
    resources: Resources, scope: Scope, actor: str, raw_lines: Iterable[bytes], *, restore: bool
) -> Report:
    """Import lines, however many, and return the report."""
    report = Report()
    waiting: Iterable[MemoryLine] = _readable(raw_lines, report)
    for _ in range(_ROUNDS):
        report.duplicates, updated, again = [], report.updated, []
        for batch in _batches(waiting):
            done = await import_batch.import_batch(resources, scope, actor, batch, restore=restore)
            report.add(done)
            again += [one for one, _ in done.duplicates]
        waiting = again
        if not again or report.updated == updated:
            break
    return report


def _readable(raw_lines: Iterable[bytes], report: Report) -> Iterator[MemoryLine]:
    """Read lines, noting in the report which ones can't be."""
    for number, raw in enumerate(raw_lines, start=1):
        told = raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw
        if not told.strip():
            continue
        try:
            yield ndjson.parse_line(told)
        except errors.Invalid as fault:
            report.malformed.append({"line": number, "rule": str(fault)})


def _batches(lines: Iterable[MemoryLine]) -> Iterator[list[MemoryLine]]:
    """Group lines; one that names an entry again comes in a later batch, and has the last word."""
    batch: dict[str, MemoryLine] = {}
    size = 0
    for one in lines:
        name = id_mapping.normalize_id(one.id) or one.id
        if name in batch or len(batch) == _BATCH or size > _BATCH_CHARACTERS:
            yield list(batch.values())
            batch, size = {}, 0
        batch[name] = one
        size += len(one.content)
    if batch:
        yield list(batch.values())


async def import_path(
    resources: Resources, caller: Caller, scope: Scope, path: Path, *, restore: bool
) -> dict[str, Any]:
    """Import what lies at a path; return {"memories": report | None, "turns": report | None}.

    A file named `turns.jsonl` is a RockBot's log, any other file has lines of memories. A folder is
    a RockBot's memory, or the RockBot itself: its `memory` and its log. No limit but a line's holds
    for what is here already. Raises errors.NotFound when nothing is there.
    """
    memory, log = rockbot.locate(path)
    report: dict[str, Any] = {"memories": None, "turns": None}
    if memory is not None and memory.is_dir():
        report["memories"] = await _take_tree(resources, scope, caller.key_id, memory, restore=restore)
    elif memory is not None:
        with memory.open("rb") as file:
            lines = upload.lines_of(file, ndjson.MAX_BYTES)
            taken = await import_lines(resources, scope, caller.key_id, lines, restore=restore)
        report["memories"] = taken.as_json()
    if log is not None:
        report["turns"] = await import_turns.import_turns(resources, caller, scope, log)
    return report


async def _take_tree(
    resources: Resources, scope: Scope, actor: str, folder: Path, *, restore: bool
) -> dict[str, Any]:
    tree = rockbot.read_tree(folder)
    taken = await import_lines(resources, scope, actor, tree, restore=restore)
    malformed = [{"file": tree.files[one["line"] - 1], "rule": one["rule"]} for one in taken.malformed]
    return taken.as_json() | {"malformed": [*tree.refused, *malformed]}
