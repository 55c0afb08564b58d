"""Apply the outcome of a pass in one transaction and record each change as a diff.

The memories may have changed while the model was asked. The sources are therefore locked and compared
with the versions that the pass read. A merge is skipped, and reported as skipped, if one of its sources
was edited, deleted or archived meanwhile, or if its text is one that a caller has deleted before.
"""

from collections.abc import Iterable
from typing import Any

from shared.dreams.graph import apply as apply_graph
from shared.dreams.runs import (
    inferred_preferences,
    progress_queries,
    queries,
    renew_memories,
    unread_signal_queries,
    unread_turn_queries,
)
from shared.dreams.runs.applied_changes import (
    ACTOR,
    AppliedChanges,
    change_row,
    reason_of,
    reinforcement_row,
)
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import ArchiveRequest, NewMemory, Outcome
from shared.dreams.runs.present import Present, read_present
from shared.dreams.runs.repeated_texts import join_repeated
from shared.dreams.runs.undone_change_queries import MERGED
from shared.dreams.skill_proposals import queries as proposal_queries
from shared.dreams.verification.graph_changes import GraphChanges
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation.stages import DreamPass
from shared.infra.transaction import Transaction
from shared.memory.longterm import history, reinforce
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Archiver, Memory
from shared.memory.longterm.reinforce import Addition
from shared.records.transaction import RecordTransaction


async def apply(tx: RecordTransaction, run: Run, name: DreamPass, outcome: Outcome) -> AppliedChanges:
    """Apply the outcome of a pass. The caller's transaction applies all of it or nothing."""
    applied_changes = AppliedChanges()
    if name is DreamPass.MINE_FACTS:
        outcome = await join_repeated(tx, run, outcome)
    present = await read_present(tx, run, outcome)
    for creation in outcome.creations:
        skip_reason = _skip_reason(creation, present)
        if skip_reason:
            applied_changes.skipped.append(skip_reason)
        else:
            await _create_memory(tx, run, name, creation, present, applied_changes)
    for removal in outcome.removals:
        code = _code_to_keep(removal, present)
        if code is None:
            await _archive_removed(tx, run, name, removal, present.memories, applied_changes)
        else:
            applied_changes.skipped.append({"code": code, "ids": [removal.memory.id]})
    for reinforcement in outcome.reinforcements:
        await renew_memories.reinforce(tx, run, name, reinforcement, present, applied_changes)
    for closing in outcome.closings:
        await renew_memories.close(tx, run, name, closing, present, applied_changes)
    for rivalry in outcome.contests:
        await renew_memories.contest(tx, run, name, rivalry, present, applied_changes)
    await queries.insert_changes(tx, applied_changes.diff)
    graph = outcome.graph or GraphChanges()
    graph.closed_memories = [row["entry_id"] for row in applied_changes.diff if row["action"] == "closed"]
    applied_changes.graph = await apply_graph.apply(tx, run.scope, run.id, name, graph)
    applied_changes.skipped += applied_changes.graph.skipped
    return applied_changes


def _skip_reason(creation: NewMemory, present: Present) -> dict[str, Any] | None:
    source_ids = [memory.id for memory in creation.sources]
    if creation.row["content"] in present.deleted_texts:
        return {"code": RejectionCode.FORGOTTEN, "ids": source_ids}
    changed_ids = [memory.id for memory in creation.sources if not present.is_unchanged(memory)]
    if changed_ids:
        return {"code": RejectionCode.CHANGED_MEANWHILE, "ids": changed_ids}
    third_id = present.id_with_text_of(creation)
    joined_ids = {*source_ids, third_id} if source_ids and third_id else set(source_ids)
    if present.undone.forbids_merge(joined_ids):
        return {"code": RejectionCode.UNDONE_BEFORE, "ids": source_ids}
    return None


def _code_to_keep(removal: ArchiveRequest, present: Present) -> RejectionCode | None:
    """Return why a memory is not archived, or None."""
    if not present.is_unchanged(removal.memory):
        return RejectionCode.CHANGED_MEANWHILE
    if removal.memory.id in present.undone.archived_ids:
        return RejectionCode.UNDONE_BEFORE
    return None


async def _create_memory(
    tx: RecordTransaction,
    run: Run,
    name: DreamPass,
    creation: NewMemory,
    present: Present,
    applied_changes: AppliedChanges,
) -> None:
    # The sources are archived first: the new text may equal the text of one of them.
    archived_pairs = await _archive(tx, creation.sources, MERGED, present.memories)
    successor = await _insert_or_reinforce(tx, run, name, creation, present, applied_changes)
    applied_changes.created[creation.row["id"]] = successor
    for before, after in archived_pairs:
        superseded_memory = await memory_queries.update_columns(
            tx, after.id, {"superseded_by": [successor.id]}
        )
        await history.add(tx, ACTOR, "archived", [superseded_memory], f"merged into {successor.id}")
        applied_changes.changed_memories[superseded_memory.id] = superseded_memory
        applied_changes.diff.append(
            change_row(run, name, "archived", superseded_memory, before, [successor.id], MERGED)
        )


async def _insert_or_reinforce(
    tx: RecordTransaction,
    run: Run,
    name: DreamPass,
    creation: NewMemory,
    present: Present,
    applied_changes: AppliedChanges,
) -> Memory:
    """Insert the new memory, or let the live one that says the same take over all that it has."""
    (row,) = await memory_queries.upsert(tx, run.scope, [creation.row])
    successor = Memory.from_row(row)
    if row["inserted"]:
        await history.add(tx, ACTOR, "created", [successor], reason_of(run.id, name))
        if creation.preference_key is not None:
            await inferred_preferences.add(tx, successor, creation.preference_key)
        applied_changes.changed_memories[successor.id] = successor
        applied_changes.diff.append(change_row(run, name, "created", successor, None))
        return successor
    before = present.memories.get(successor.id, successor)
    addition = Addition.from_row(creation.row)._replace(metadata=creation.row["metadata"])
    successor = await reinforce.widen(tx, successor, addition)
    await history.add_change(tx, ACTOR, "reinforced", before, successor, reason_of(run.id, name))
    if successor.version != before.version:
        applied_changes.changed_memories[successor.id] = successor
    present.memories[successor.id] = successor
    added_count = creation.row["reinforcement_count"]
    applied_changes.diff.append(reinforcement_row(run, name, before, successor, added_count))
    return successor


async def _archive_removed(
    tx: Transaction,
    run: Run,
    name: DreamPass,
    removal: ArchiveRequest,
    locked_memories: dict[str, Memory],
    applied_changes: AppliedChanges,
) -> None:
    pairs = await _archive(tx, [removal.memory], removal.reason, locked_memories)
    for before, after in pairs:
        await history.add(tx, ACTOR, "archived", [after], removal.reason)
        applied_changes.changed_memories[after.id] = after
        applied_changes.diff.append(change_row(run, name, "archived", after, before, [], removal.reason))


async def _archive(
    tx: Transaction, memories: Iterable[Memory], reason: str, locked_memories: dict[str, Memory]
) -> list[tuple[Memory, Memory]]:
    """Archive memories, update `locked_memories`, and return (before, after) for each of them."""
    ids = [memory.id for memory in memories]
    if not ids:
        return []
    archived_memories = await memory_queries.archive(tx, ids, Archiver.DREAM, reason)
    pairs = [(locked_memories[memory.id], memory) for memory in archived_memories]
    locked_memories.update({memory.id: memory for memory in archived_memories})
    return pairs


async def record_progress(
    tx: Transaction, run: Run, name: DreamPass, outcome: Outcome, applied_changes: AppliedChanges
) -> None:
    """Save what the pass read, which memories it reviewed, and what it counted."""
    await unread_turn_queries.mark_read(tx, run.scope, name, outcome.turns)
    await unread_signal_queries.mark_read(tx, run.scope, name, outcome.read_signal_ids)
    await progress_queries.save_reviewed(tx, _reviewed_versions(outcome, applied_changes))
    await progress_queries.save_refused(tx, outcome.refused_batch_sizes)
    await proposal_queries.save_reviewed(tx, name, outcome.reviewed_skills)
    await progress_queries.save_occurrences(tx, run, outcome.occurrences, outcome.inferred_keys)


def _reviewed_versions(outcome: Outcome, applied_changes: AppliedChanges) -> dict[str, int]:
    """Return the versions that a later consolidation can skip: of unchanged and of written memories."""
    if not outcome.reviewed:
        return {}
    written_versions = {memory.id: memory.version for memory in applied_changes.changed_memories.values()}
    return outcome.reviewed | written_versions
