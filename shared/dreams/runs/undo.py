"""Undo a run: restore what it archived, reopen what it closed, delete what it created, count down the rest.

The changes of all passes are undone together: what one pass created and a later one merged is deleted with
it. What somebody has edited or saved again since stays, and the memories that were merged into it then stay
archived, because the same fact must not be stored twice. What was closed is open again with the edits that
it had since, unless somebody has set another end: what replaced it is gone, and neither would be right. The
response names everything that could not be undone, with the reason. What was undone is remembered, so that
the next run does not do it again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.dreams.graph import queries as graph_queries
from shared.dreams.graph import undo as undo_graph
from shared.dreams.graph.undo import UndoneGraph
from shared.dreams.runs import queries, run_diff, undo_changes
from shared.dreams.runs.dream_run import Run, RunState
from shared.dreams.runs.run_diff import DELETED, SUCCESSOR_STAYS, Change, RunDiff
from shared.dreams.skill_proposals import decide as decide_proposals
from shared.dreams.skill_proposals.decide import UndoneProposals
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm import save, tombstones
from shared.memory.longterm.memory import Memory
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

_ARCHIVED = "it was archived since"
_COUNTED_DOWN = "it was changed since: only observations and their sources were taken back"


@dataclass(slots=True)
class _Undone:
    """What was undone, and by memory id what was reinforced and why something was not undone."""

    removed_ids: list[str] = field(default_factory=list)
    restored: list[Memory] = field(default_factory=list)
    reopened: dict[str, Memory] = field(default_factory=dict)
    reinforced: dict[str, Memory] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    skills: UndoneProposals = field(default_factory=UndoneProposals)

    @property
    def changed_memories(self) -> list[Memory]:
        """The memories to index again."""
        restored_by_id = {memory.id: memory for memory in self.restored}
        return list((restored_by_id | self.reopened | self.reinforced).values())


async def undo(resources: Resources, caller: Caller, run_id: str) -> dict[str, Any]:
    """Undo a run and return {id, restored, reopened, removed, unreinforced, kept: [{entry_id, reason}], …}.

    Skills that it proposed or published are named by `skills`, and those that stay by `kept_skills`.

    Raises errors.NotFound if the caller may not see the run, and errors.Conflict if the run has not
    ended yet or was undone already.
    """
    undone, graph = await _commit(resources, caller, run_id)
    return {
        "id": run_id,
        "restored": [*(memory.id for memory in undone.restored), *graph.restored],
        "reopened": list(undone.reopened),
        "removed": [*undone.removed_ids, *graph.removed],
        "unreinforced": [*undone.reinforced, *graph.narrowed],
        "skills": undone.skills.undone,
        "kept_skills": undone.skills.kept,
        "kept": [{"entry_id": id_, "reason": reason} for id_, reason in (undone.kept | graph.kept).items()],
    }


@repeated_after_deadlock
async def _commit(resources: Resources, caller: Caller, run_id: str) -> tuple[_Undone, UndoneGraph]:
    async with resources.transaction(caller.tenant) as tx:
        if (seen := await queries.get(tx, run_id)) is not None:
            await removals.delay_erasures(tx, seen.scope)
        run = _require_undoable(caller, await queries.get(tx, run_id, lock=True), run_id)
        diff = RunDiff(run_id, await queries.list_changes(tx, run_id))
        undone = await _undo_all(tx, resources, caller, diff)
        graph_changes = await graph_queries.list_changes(tx, run_id)
        closed_ids = [id_ for id_ in diff.closed_ids if undone.kept.get(id_, DELETED) != DELETED]
        graph = await undo_graph.undo(tx, graph_changes, closed_ids)
        undone.skills = await decide_proposals.take_back(tx, resources, run_id)
        await save.index(tx, undone.changed_memories)
        await queries.end_run(tx, run, RunState.UNDONE)
    return undone, graph


def _require_undoable(caller: Caller, run: Run | None, run_id: str) -> Run:
    missing = f"no dream run '{run_id}'"
    if run is None:
        raise errors.NotFound(missing)
    rights.require(caller, Area.DREAMS, Action.WRITE, Owner(run.agent_id, run.user_id), missing)
    if run.state is RunState.RUNNING:
        raise errors.Conflict("the run has not ended yet")
    if run.state is RunState.UNDONE:
        raise errors.Conflict("the run has been undone already")
    return run


async def _undo_all(tx: RecordTransaction, resources: Resources, caller: Caller, diff: RunDiff) -> _Undone:
    memories = {memory.id: memory for memory in await memory_queries.lock(tx, diff.ids)}
    undone = _Undone(kept=diff.created_to_keep(memories))
    untouched_ids = {memory.id for memory in memories.values() if diff.is_untouched(memory)}
    await _remove_created(tx, resources, diff, memories, undone)
    for change in diff.archivings:
        await _restore_archived(tx, caller, change, memories, undone)
    for change in diff.closings:
        await _reopen_closed(tx, caller, diff, change, memories, undone)
    for change in diff.reinforcements:
        is_untouched = change["entry_id"] in untouched_ids - undone.kept.keys()
        await _undo_reinforcement(tx, caller, diff.run_id, change, memories, undone, is_untouched)
    await undo_changes.remember(tx, diff, undone.restored, undone.removed_ids)
    await undo_changes.remember_reopened(tx, diff, undone.reopened)
    return undone


async def _remove_created(
    tx: RecordTransaction,
    resources: Resources,
    diff: RunDiff,
    memories: Mapping[str, Memory],
    undone: _Undone,
) -> None:
    """Delete what the run created and nobody has changed or saved since.

    What was learned from conversations gets a tombstone, so that no later pass brings it back. A merged
    memory gets none, because its text may be that of a restored source.
    """
    to_delete = [memories[memory_id] for memory_id in diff.created_ids if memory_id not in undone.kept]
    learned = [memory for memory in to_delete if not diff.sources_of(memory.id)]
    await tombstones.add(tx, learned)
    await delete_memory_everywhere.delete_rows(tx, resources, to_delete)
    undone.removed_ids = [memory.id for memory in to_delete]


async def _restore_archived(
    tx: Transaction, caller: Caller, change: Change, memories: dict[str, Memory], undone: _Undone
) -> None:
    memory_id = change["entry_id"]
    memory = memories.get(memory_id)
    reason = await _reason_to_keep(tx, memory, change, undone.kept)
    if reason is None and memory is not None:
        memories[memory_id] = await undo_changes.restore(tx, caller, memory, change)
        undone.restored.append(memories[memory_id])
    else:
        undone.kept[memory_id] = reason or DELETED


async def _reopen_closed(
    tx: Transaction,
    caller: Caller,
    diff: RunDiff,
    change: Change,
    memories: dict[str, Memory],
    undone: _Undone,
) -> None:
    memory_id = change["entry_id"]
    memory = memories.get(memory_id)
    if memory is None:
        undone.kept[memory_id] = DELETED
        return
    reason = await _reason_to_keep_closed(tx, diff, memory, change, undone.kept)
    if reason is None:
        memories[memory_id] = await undo_changes.reopen(tx, caller, memory, change)
        undone.reopened[memory_id] = memories[memory_id]
    else:
        undone.kept[memory_id] = reason


async def _reason_to_keep_closed(
    tx: Transaction, diff: RunDiff, memory: Memory, change: Change, kept: Mapping[str, str]
) -> str | None:
    if memory.archived_at is not None:
        return _ARCHIVED
    if not diff.is_untouched(memory) and not await undo_changes.ends_as_closed(tx, memory, change):
        return "it was changed since"
    if run_diff.successor_stays(change, kept):
        return SUCCESSOR_STAYS["closed"]
    reopened = memory.model_copy(update={"valid_until": change["previous_valid_until"]})
    return await undo_changes.duplicate_reason(tx, memory) if reopened.is_deduplicated else None


async def _undo_reinforcement(
    tx: Transaction,
    caller: Caller,
    run_id: str,
    change: Change,
    memories: dict[str, Memory],
    undone: _Undone,
    is_untouched: bool,  # noqa: FBT001
) -> None:
    memory_id = change["entry_id"]
    memory = memories.get(memory_id)
    if memory is None or memory.archived_at is not None:
        undone.kept[memory_id] = DELETED if memory is None else _ARCHIVED
        return
    memories[memory_id] = await undo_changes.take_back_reinforcement(
        tx, caller, run_id, memory, change, is_untouched=is_untouched
    )
    undone.reinforced[memory_id] = memories[memory_id]
    if not is_untouched:
        undone.kept.setdefault(memory_id, _COUNTED_DOWN)


async def _reason_to_keep(
    tx: Transaction, memory: Memory | None, change: Change, kept: Mapping[str, str]
) -> str | None:
    if memory is None:
        return DELETED
    if memory.version != change["version"] or memory.archived_at is None:
        return "it was changed since"
    if run_diff.successor_stays(change, kept):
        return SUCCESSOR_STAYS["archived"]
    return await undo_changes.duplicate_reason(tx, memory)
