"""Export the long-term memories of a scope, and import them.

The scope is exact: an agent's memories of one user, or those without a user. Archived memories are
included. History and tombstones are not, because they concern this installation. An export reads one
page per transaction, so that a slow reader keeps no transaction open; a memory that changes meanwhile
is exported as it was when its page was read.

A key with a binding imports lines whose sources it could name in a save, or that the memory of this id has
already. So an export of a scope goes back to it unchanged, sessions first, also if some of them are gone by
then. Other lines are reported.

An import goes by id. Lines are stored in batches, each in one transaction. A repeated import changes
nothing, so an interrupted one is simply sent again. Lines that duplicate another memory are tried again
while updates free fingerprints, because the order of lines must not matter.
"""

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.lifecycle import erasure_queries
from shared.lifecycle.erasure_queries import Erasures
from shared.lifecycle.transfer import id_mapping, import_batch, ndjson, upload
from shared.lifecycle.transfer.import_report import Report
from shared.lifecycle.transfer.ndjson import MemoryLine
from shared.lifecycle.transfer.parsing_thread import in_thread
from shared.memory.longterm import scope_queries
from shared.platform.resources import Resources

_PAGE = 500
_BATCH = 200
# Indexing long texts keeps this process busy, so a batch of them must be short.
_MAX_BATCH_CHARACTERS = 200_000
_MAX_ROUNDS = 10


async def export(resources: Resources, scope: Scope) -> AsyncIterator[bytes]:
    """Yield each memory of exactly this scope as a line of JSON, without a kind, with its line break."""
    after = ""
    while True:
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            memories = await scope_queries.list_page(tx, scope, after, _PAGE)
        for memory in memories:
            yield ndjson.write_line(memory)
        if len(memories) < _PAGE:
            return
        after = memories[-1].id


async def import_stream(
    resources: Resources, scope: Scope, caller: Caller, chunks: AsyncIterator[bytes], *, restore: bool
) -> dict[str, Any]:
    """Import lines that arrive in chunks of any size, and return the report.

    With `restore`, memories that were deleted on purpose are imported too. Raises errors.TooLarge, with
    nothing stored, for more than 32 MiB, 100 000 lines, or 1 MiB in one line; errors.Conflict if the user or
    agent is erased meanwhile: what is not stored by then is dropped.
    """
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        erasures = await erasure_queries.list_last(tx, scope)
    report = Report()
    with tempfile.SpooledTemporaryFile(upload.MAX_IN_MEMORY_BYTES) as spool:
        await upload.receive_upload(chunks, spool)
        lines = _parse_lines(spool, report)
        await import_lines(resources, scope, caller, lines, report, erasures, restore=restore)
    return report.as_json()


async def import_lines(
    resources: Resources,
    scope: Scope,
    caller: Caller,
    lines: Iterable[MemoryLine],
    report: Report,
    erasures: Erasures,
    *,
    restore: bool,
    moves_sessions: bool = False,
) -> None:
    """Import parsed lines and add to the report. Raises errors.Conflict as `import_stream` does.

    With `moves_sessions`, sources name the sessions under the ids that they were imported with.
    """
    earlier_duplicates = report.duplicates
    for _ in range(_MAX_ROUNDS):
        updated_before, duplicate_lines = report.updated, list[MemoryLine]()
        report.duplicates = [*earlier_duplicates]
        async for batch in in_thread(_batches(lines)):
            plan = await import_batch.import_batch(
                resources, scope, caller, batch, erasures, restore=restore, moves_sessions=moves_sessions
            )
            report.add(plan)
            duplicate_lines += [line for line, _ in plan.duplicates]
        if not duplicate_lines or report.updated == updated_before:
            break
        lines = duplicate_lines


def _parse_lines(raw_lines: Iterable[bytes], report: Report) -> Iterator[MemoryLine]:
    """Parse lines, and add those that are malformed to the report."""
    for number, raw in ndjson.numbered_lines(raw_lines):
        try:
            yield ndjson.parse_line(raw).numbered(number)
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
