"""Apply the outcome of a pass in one transaction and record each change as a diff.

The memories may have changed while the model was asked. The sources are therefore locked and compared
with the versions that the pass read. A merge is skipped, and reported as skipped, if one of its sources
was edited, deleted or archived meanwhile, or if its text is one that a caller has deleted before.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.dreams.runs import progress_queries, queries, unread_signals, unread_turns
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import ArchiveRequest, NewMemory, Outcome
from shared.foundation.stages import DreamPass
from shared.memory.longterm import history, tombstones
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory

ACTOR = "dream"


@dataclass(slots=True)
class AppliedChanges:
    """The effect of a pass: memories to index again, the diff, and the items that were skipped."""

    changed_memories: dict[str, Memory] = field(default_factory=dict)
    diff: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """The number of changes by action: created, reinforced and archived."""
        return dict(Counter(change["action"] for change in self.diff))


async def apply(connection: AsyncConnection, run: Run, name: DreamPass, outcome: Outcome) -> AppliedChanges:
    """Apply the outcome of a pass. The caller's transaction applies all of it or nothing."""
    applied_changes = AppliedChanges()
    locked_memories = await _lock_sources(connection, run, outcome)
    deleted_texts = await _find_deleted_texts(connection, run, outcome.creations)
    for creation in outcome.creations:
        skip_reason = _skip_reason(creation, locked_memories, deleted_texts)
        if skip_reason:
            applied_changes.skipped.append(skip_reason)
        else:
            await _create_memory(connection, run, name, creation, locked_memories, applied_changes)
    for removal in outcome.removals:
        if _is_unchanged(removal.memory, locked_memories):
            await _archive_removed(connection, run, name, removal, locked_memories, applied_changes)
        else:
            applied_changes.skipped.append({"code": "changed_meanwhile", "ids": [removal.memory.id]})
    await queries.insert_changes(connection, applied_changes.diff)
    return applied_changes


async def _lock_sources(connection: AsyncConnection, run: Run, outcome: Outcome) -> dict[str, Memory]:
    ids = {memory.id for creation in outcome.creations for memory in creation.sources}
    ids |= {removal.memory.id for removal in outcome.removals}
    return {memory.id: memory for memory in await memory_queries.lock(connection, run.tenant, sorted(ids))}


def _is_unchanged(memory: Memory, locked_memories: dict[str, Memory]) -> bool:
    """Tell whether a memory is still what the pass read, and this pass has not archived it yet."""
    locked_memory = locked_memories.get(memory.id)
    return (
        locked_memory is not None
        and locked_memory.version == memory.version
        and locked_memory.archived_at is None
    )


async def _find_deleted_texts(
    connection: AsyncConnection, run: Run, creations: Sequence[NewMemory]
) -> set[str]:
    contents = [creation.row["content"] for creation in creations]
    return await tombstones.find_deleted(connection, run.scope, contents) if contents else set()


def _skip_reason(
    creation: NewMemory, locked_memories: dict[str, Memory], deleted_texts: set[str]
) -> dict[str, Any] | None:
    if creation.row["content"] in deleted_texts:
        return {"code": "forgotten", "ids": [memory.id for memory in creation.sources]}
    changed_ids = [memory.id for memory in creation.sources if not _is_unchanged(memory, locked_memories)]
    return {"code": "changed_meanwhile", "ids": changed_ids} if changed_ids else None


async def _create_memory(
    connection: AsyncConnection,
    run: Run,
    name: DreamPass,
    creation: NewMemory,
    locked_memories: dict[str, Memory],
    applied_changes: AppliedChanges,
) -> None:
    # The sources are archived first: the new text may equal the text of one of them.
    archived_pairs = await _archive(connection, run, creation.sources, "merged", locked_memories)
    (row,) = await memory_queries.upsert(connection, run.scope, [creation.row])
    successor = Memory.from_row(row)
    action = "created" if row["inserted"] else "reinforced"
    await history.add(connection, ACTOR, action, [successor], f"dream {run.id}, {name}")
    if row["inserted"]:
        applied_changes.changed_memories[successor.id] = successor
    applied_changes.diff.append(_change_row(run, name, action, successor, None))
    for before, after in archived_pairs:
        superseded_memory = await memory_queries.update_columns(
            connection, run.tenant, after.id, {"superseded_by": [successor.id]}
        )
        await history.add(connection, ACTOR, "archived", [superseded_memory], f"merged into {successor.id}")
        applied_changes.changed_memories[superseded_memory.id] = superseded_memory
        applied_changes.diff.append(
            _change_row(run, name, "archived", superseded_memory, before, [successor.id], "merged")
        )


async def _archive_removed(
    connection: AsyncConnection,
    run: Run,
    name: DreamPass,
    removal: ArchiveRequest,
    locked_memories: dict[str, Memory],
    applied_changes: AppliedChanges,
) -> None:
    pairs = await _archive(connection, run, [removal.memory], removal.reason, locked_memories)
    for before, after in pairs:
        await history.add(connection, ACTOR, "archived", [after], removal.reason)
        applied_changes.changed_memories[after.id] = after
        applied_changes.diff.append(_change_row(run, name, "archived", after, before, [], removal.reason))


async def _archive(
    connection: AsyncConnection,
    run: Run,
    memories: Iterable[Memory],
    reason: str,
    locked_memories: dict[str, Memory],
) -> list[tuple[Memory, Memory]]:
    """Archive memories, update `locked_memories`, and return (before, after) for each of them."""
    ids = [memory.id for memory in memories]
    if not ids:
        return []
    archived_memories = await memory_queries.archive(connection, run.tenant, ids, reason, [])
    pairs = [(locked_memories[memory.id], memory) for memory in archived_memories]
    locked_memories.update({memory.id: memory for memory in archived_memories})
    return pairs


def _change_row(
    run: Run,
    name: DreamPass,
    action: str,
    memory: Memory,
    before: Memory | None,
    successors: Sequence[str] = (),
    reason: str | None = None,
) -> dict[str, Any]:
    return {
        "tenant": run.tenant,
        "run_id": run.id,
        "pass": name,
        "action": action,
        "entry_id": memory.id,
        "version": memory.version,
        "reason": reason,
        "previous_state": before.state if before else None,
        "successors": list(successors),
    }


async def record_progress(
    connection: AsyncConnection, run: Run, name: DreamPass, outcome: Outcome, applied_changes: AppliedChanges
) -> None:
    """Save what the pass read, which memories it reviewed, and what it counted."""
    await unread_turns.mark_read(connection, run.scope, name, outcome.turns)
    await unread_signals.mark_read(connection, run.scope, name, outcome.read_signal_ids)
    await progress_queries.save_reviewed(connection, run.tenant, _reviewed_versions(outcome, applied_changes))
    await progress_queries.save_occurrences(connection, run, outcome.occurrences, outcome.inferred_keys)


def _reviewed_versions(outcome: Outcome, applied_changes: AppliedChanges) -> dict[str, int]:
    """Return the versions that a later consolidation can skip: of unchanged and of written memories."""
    if not outcome.reviewed:
        return {}
    written_versions = {memory.id: memory.version for memory in applied_changes.changed_memories.values()}
    return outcome.reviewed | written_versions
