"""Export the long-term memories of a scope, and import them.

The scope is exact: an agent's memories of one user, or those without a user. Archived memories are
included. History and tombstones are not, because they concern this installation. An export reads one
page per transaction, so that a slow reader keeps no transaction open; a memory that changes meanwhile
is exported as it was when its page was read.

An import goes by id. Lines are stored in batches, each in one transaction. A repeated import changes
nothing, so an interrupted one is simply sent again. Lines that duplicate another memory are tried again
while updates free fingerprints, because the order of lines must not matter.
"""

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.lifecycle import erasure_queries
from shared.lifecycle.erasure_queries import Erasures
from shared.lifecycle.transfer import id_mapping, import_batch, import_turns, ndjson, rockbot, upload
from shared.lifecycle.transfer.import_report import Report
from shared.lifecycle.transfer.ndjson import MemoryLine
from shared.memory.longterm import scope_queries
from shared.platform.resources import Resources

_PAGE = 500
_BATCH = 200
# Indexing long texts keeps this process busy, so a batch of them must be short.
_MAX_BATCH_CHARACTERS = 200_000
_MAX_ROUNDS = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


async def export(resources: Resources, scope: Scope) -> AsyncIterator[bytes]:
    """Yield each memory of exactly this scope as a line of JSON with its line break."""
    after = ""
    while True:
        async with resources.postgres.for_tenant(scope.tenant) as connection:
            memories = await scope_queries.list_page(connection, scope, after, _PAGE)
        for memory in memories:
            yield ndjson.write_line(memory)
        if len(memories) < _PAGE:
            return
        after = memories[-1].id


async def import_stream(
    resources: Resources, scope: Scope, actor: str, chunks: AsyncIterator[bytes], *, restore: bool
) -> dict[str, Any]:
    """Import lines that arrive in chunks of any size, and return the report.

    With `restore`, memories that were deleted on purpose are imported too. Raises errors.TooLarge, with
    nothing stored, for more than 32 MiB, 100 000 lines, or 1 MiB in one line.
    """
    erasures = await _last_erasures(resources, scope)
    with tempfile.SpooledTemporaryFile(upload.MAX_IN_MEMORY_BYTES) as spool:
        await upload.receive_upload(chunks, spool)
        report = await import_lines(resources, scope, actor, spool, restore=restore, erasures=erasures)
        return report.as_json()


async def _last_erasures(resources: Resources, scope: Scope) -> Erasures:
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        return await erasure_queries.list_last(connection, scope)


async def import_lines(
    resources: Resources,
    scope: Scope,
    actor: str,
    raw_lines: Iterable[bytes],
    *,
    restore: bool,
    erasures: Erasures | None = None,
) -> Report:
    """Import any number of lines, and return the report.

    Raises errors.Conflict if the user or agent is erased meanwhile: lines that were received before, and
    are not stored by then, are dropped. `erasures` are those before the lines were received.
    """
    report = Report()
    erasures = await _last_erasures(resources, scope) if erasures is None else erasures
    lines: Iterable[MemoryLine] = _parse_lines(raw_lines, report)
    for _ in range(_MAX_ROUNDS):
        report.duplicates, updated_before, duplicates = [], report.updated, []
        for batch in _batches(lines):
            plan = await import_batch.import_batch(resources, scope, actor, batch, erasures, restore=restore)
            report.add(plan)
            duplicates += [line for line, _ in plan.duplicates]
        if not duplicates or report.updated == updated_before:
            break
        lines = duplicates
    return report


def _parse_lines(raw_lines: Iterable[bytes], report: Report) -> Iterator[MemoryLine]:
    """Parse lines, and add those that are malformed to the report."""
    for number, raw_line in enumerate(raw_lines, start=1):
        raw = raw_line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw_line
        if not raw.strip():
            continue
        try:
            yield ndjson.parse_line(raw)
        except errors.Invalid as error:
            report.malformed.append({"line": number, "rule": str(error)})


def _batches(lines: Iterable[MemoryLine]) -> Iterator[list[MemoryLine]]:
    """Group lines into batches without equal ids. A later line with the same id overrides the earlier one."""
    batch: dict[str, MemoryLine] = {}
    size = 0
    for line in lines:
        line_id = id_mapping.normalize_id(line.id) or line.id
        if line_id in batch or len(batch) == _BATCH or size > _MAX_BATCH_CHARACTERS:
            yield list(batch.values())
            batch, size = {}, 0
        batch[line_id] = line
        size += len(line.content)
    if batch:
        yield list(batch.values())


async def import_path(
    resources: Resources, caller: Caller, scope: Scope, path: Path, *, restore: bool
) -> dict[str, Any]:
    """Import a local file or folder; return {"memories": report | None, "turns": report | None}.

    A file named `turns.jsonl` is a RockBot's log; any other file has one memory a line. A folder is a
    RockBot's memory folder, or the folder of a RockBot with both. Only the length of a line is limited.
    Raises errors.NotFound if nothing is there.
    """
    memories, log = rockbot.locate(path)
    report: dict[str, Any] = {"memories": None, "turns": None}
    if memories is not None and memories.is_dir():
        report["memories"] = await _import_folder(resources, scope, caller.key_id, memories, restore=restore)
    elif memories is not None:
        with memories.open("rb") as file:
            lines = upload.lines_of(file, ndjson.MAX_BYTES)
            imported = await import_lines(resources, scope, caller.key_id, lines, restore=restore)
        report["memories"] = imported.as_json()
    if log is not None:
        report["turns"] = await import_turns.import_turns(resources, caller, scope, log)
    return report


async def _import_folder(
    resources: Resources, scope: Scope, actor: str, folder: Path, *, restore: bool
) -> dict[str, Any]:
    memory_folder = rockbot.memory_folder(folder)
    report = await import_lines(resources, scope, actor, memory_folder, restore=restore)
    malformed = [
        {"file": memory_folder.files[item["line"] - 1], "rule": item["rule"]} for item in report.malformed
    ]
    return report.as_json() | {"malformed": [*memory_folder.unreadable, *malformed]}
