"""Apply what conversations say about known memories: that one holds still, or that it holds no longer."""

from shared.dreams.runs.applied_changes import (
    ACTOR,
    AppliedChanges,
    change_row,
    reason_of,
    reinforcement_row,
)
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import Closing, Contest, Reinforcement
from shared.dreams.runs.present import Present
from shared.dreams.runs.undone_change_queries import CLOSED
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation.stages import DreamPass
from shared.infra.transaction import Transaction
from shared.memory.longterm import contested, history
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm import reinforce as memory_reinforce
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.reinforce import Addition
from shared.memory.longterm.safety import is_safety_matter


async def reinforce(
    tx: Transaction,
    run: Run,
    name: DreamPass,
    reinforcement: Reinforcement,
    present: Present,
    applied_changes: AppliedChanges,
) -> None:
    """Count another observation of a memory, with its sources, unless it has changed meanwhile."""
    memory_id = reinforcement.memory.id
    if not present.is_unchanged(reinforcement.memory):
        applied_changes.skipped.append({"code": RejectionCode.CHANGED_MEANWHILE, "ids": [memory_id]})
        return
    before = present.memories[memory_id]
    addition = Addition(
        origin=None,
        valid_from=before.valid_from,
        expires_at=before.expires_at,
        sources=[source.model_dump() for source in reinforcement.sources],
        observations=1,
    )
    after = await memory_reinforce.reinforce(tx, before, addition)
    await history.add_change(tx, ACTOR, "reinforced", before, after, reason_of(run.id, name))
    present.memories[memory_id] = after
    applied_changes.diff.append(reinforcement_row(run, name, before, after, addition.observations))


async def close(
    tx: Transaction,
    run: Run,
    name: DreamPass,
    closing: Closing,
    present: Present,
    applied_changes: AppliedChanges,
) -> None:
    """End the validity of a memory where its successor begins. It stays readable, and `as_of` finds it."""
    before = applied_changes.created.get(closing.memory.id) or present.memories.get(closing.memory.id)
    successor = applied_changes.created.get(closing.successor_id)
    code = _code_to_keep_open(closing, before, successor, present, applied_changes)
    if code is not None or before is None or successor is None:
        applied_changes.skipped.append({"code": code, "ids": [closing.memory.id]})
        return
    after = await memory_queries.close(tx, before, closing.at, successor.id)
    await history.add_change(tx, ACTOR, "closed", before, after, reason_of(run.id, name))
    applied_changes.changed_memories[after.id] = after
    applied_changes.diff.append(change_row(run, name, "closed", after, before, [successor.id], CLOSED))


async def contest(
    tx: Transaction,
    run: Run,
    name: DreamPass,
    rivalry: Contest,
    present: Present,
    applied_changes: AppliedChanges,
) -> None:
    """Let a memory stay valid beside the new one that says otherwise: each names the other."""
    before = applied_changes.created.get(rivalry.memory.id) or present.memories.get(rivalry.memory.id)
    rival = applied_changes.created.get(rivalry.rival_id)
    if before is None or rival is None or before.id == rival.id:
        applied_changes.skipped.append({"code": RejectionCode.CHANGED_MEANWHILE, "ids": [rivalry.memory.id]})
        return
    rivals = await contested.contest(tx, rival, before, ACTOR, reason_of(run.id, name))
    if rivals is not None:
        applied_changes.changed_memories |= {memory.id: memory for memory in rivals}
        applied_changes.contested_count += 1


def _code_to_keep_open(
    closing: Closing,
    before: Memory | None,
    successor: Memory | None,
    present: Present,
    applied_changes: AppliedChanges,
) -> RejectionCode | None:
    """Return why a memory is not closed, or None."""
    if successor is None:  # a caller has deleted its text
        return RejectionCode.FORGOTTEN
    is_created = closing.memory.id in applied_changes.created
    if before is None or not (is_created or present.is_unchanged(closing.memory)):
        return RejectionCode.CHANGED_MEANWHILE
    if before.id == successor.id:
        return RejectionCode.UNCHANGED
    if before.id in present.undone.closed_ids:
        return RejectionCode.UNDONE_BEFORE
    if is_safety_matter(before) and not closing.is_judged:  # since it was read: confirmed once more
        return RejectionCode.PROTECTED
    return None
