"""Carry out what a pass decided: one transaction, new entries first in force, old ones archived, a diff kept.

What was read may have changed while the model was thinking. Sources are locked and compared
with the version that the model saw; a merge with a source that was edited, deleted or archived
meanwhile is left out and says so, as is anything that somebody has deliberately forgotten.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.feedback import queries as feedback_queries
from shared.dreams.runs import progress_queries, queries, unread_turns
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import ArchiveRequest, NewMemory, Outcome
from shared.foundation.stages import DreamPass
from shared.memory.longterm import history, tombstones
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory

ACTOR = "dream"


@dataclass(slots=True)
class Applied:
    """What was done: the entries that changed, the diff, counts by action, what was left out."""

    changed: dict[str, Memory] = field(default_factory=dict)
    diff: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Return how many entries were created, reinforced and archived."""
        return dict(Counter(change["action"] for change in self.diff))


async def apply(connection: AsyncConnection, run: Run, name: DreamPass, outcome: Outcome) -> Applied:
    """Do what a pass decided; the caller's transaction makes it all or nothing."""
    applied = Applied()
    held = await _hold(connection, run, outcome)
    forgotten = await _forgotten(connection, run, outcome.creations)
    for creation in outcome.creations:
        left_out = _left_out(creation, held, forgotten)
        if left_out:
            applied.skipped.append(left_out)
        else:
            await _create(connection, run, name, creation, held, applied)
    for removal in outcome.removals:
        if _stands(removal.entry, held):
            await _remove(connection, run, name, removal, held, applied)
        else:
            applied.skipped.append({"code": "changed_meanwhile", "ids": [removal.entry.id]})
    await queries.insert_changes(connection, applied.diff)
    return applied


async def _hold(connection: AsyncConnection, run: Run, outcome: Outcome) -> dict[str, Memory]:
    ids = {entry.id for creation in outcome.creations for entry in creation.sources}
    ids |= {removal.entry.id for removal in outcome.removals}
    return {entry.id: entry for entry in await memory_queries.lock(connection, run.tenant, sorted(ids))}


def _stands(seen: Memory, held: dict[str, Memory]) -> bool:
    """Tell whether an entry is still what the pass saw, and not yet archived by this pass."""
    now = held.get(seen.id)
    return now is not None and now.version == seen.version and now.archived_at is None


async def _forgotten(connection: AsyncConnection, run: Run, creations: Sequence[NewMemory]) -> set[str]:
    contents = [creation.row["content"] for creation in creations]
    return await tombstones.find_deleted(connection, run.scope, contents) if contents else set()


def _left_out(creation: NewMemory, held: dict[str, Memory], forgotten: set[str]) -> dict[str, Any] | None:
    if creation.row["content"] in forgotten:
        return {"code": "forgotten", "ids": [entry.id for entry in creation.sources]}
    changed = [entry.id for entry in creation.sources if not _stands(entry, held)]
    return {"code": "changed_meanwhile", "ids": changed} if changed else None


async def _create(
    connection: AsyncConnection,
    run: Run,
    name: DreamPass,
    creation: NewMemory,
    held: dict[str, Memory],
    applied: Applied,
) -> None:
    # The sources are archived first, within the transaction: the new text may be that of one of them.
    archived = await _archive(connection, run, creation.sources, "merged", held)
    (row,) = await memory_queries.upsert(connection, run.scope, [creation.row])
    created = Memory.from_row(row)
    action = "created" if row["inserted"] else "reinforced"
    await history.add(connection, ACTOR, action, [created], f"dream {run.id}, {name}")
    if row["inserted"]:
        applied.changed[created.id] = created
    applied.diff.append(_change(run, name, action, created, None))
    for before, after in archived:
        final = await memory_queries.update_columns(
            connection, run.tenant, after.id, {"superseded_by": [created.id]}
        )
        await history.add(connection, ACTOR, "archived", [final], f"merged into {created.id}")
        applied.changed[final.id] = final
        applied.diff.append(_change(run, name, "archived", final, before, [created.id], "merged"))


async def _remove(
    connection: AsyncConnection,
    run: Run,
    name: DreamPass,
    removal: ArchiveRequest,
    held: dict[str, Memory],
    applied: Applied,
) -> None:
    for before, after in await _archive(connection, run, [removal.entry], removal.reason, held):
        await history.add(connection, ACTOR, "archived", [after], removal.reason)
        applied.changed[after.id] = after
        applied.diff.append(_change(run, name, "archived", after, before, [], removal.reason))


async def _archive(
    connection: AsyncConnection, run: Run, entries: Iterable[Memory], reason: str, held: dict[str, Memory]
) -> list[tuple[Memory, Memory]]:
    """Archive entries and return (before, after) of each."""
    ids = [entry.id for entry in entries]
    if not ids:
        return []
    after = await memory_queries.archive(connection, run.tenant, ids, reason, [])
    pairs = [(held[entry.id], entry) for entry in after]
    held.update({entry.id: entry for entry in after})
    return pairs


def _change(
    run: Run,
    name: DreamPass,
    action: str,
    entry: Memory,
    before: Memory | None,
    successors: Sequence[str] = (),
    reason: str | None = None,
) -> dict[str, Any]:
    return {
        "tenant": run.tenant,
        "run_id": run.id,
        "pass": name,
        "action": action,
        "entry_id": entry.id,
        "version": entry.version,
        "reason": reason,
        "previous_state": before.state if before else None,
        "successors": list(successors),
    }


async def record_progress(
    connection: AsyncConnection, run: Run, name: DreamPass, outcome: Outcome, applied: Applied
) -> None:
    """Keep what the pass has read, looked at and counted, with what it did."""
    await unread_turns.mark_read(connection, run.scope, name, outcome.turns)
    await progress_queries.save_reviewed(connection, run.tenant, _reviewed(outcome, applied))
    await progress_queries.save_occurrences(connection, run, outcome.occurrences, outcome.inferred_keys)
    for session_id, draft in outcome.signals:
        await feedback_queries.insert_for_session_id(connection, run.tenant, session_id, draft)


def _reviewed(outcome: Outcome, applied: Applied) -> dict[str, int]:
    """Return what a consolidation need not look at again: what it saw and left, and what it made."""
    made = {entry.id: entry.version for entry in applied.changed.values()} if outcome.reviewed else {}
    return outcome.reviewed | made
