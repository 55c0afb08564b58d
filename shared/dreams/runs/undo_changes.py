"""Undo single changes of a run: restore or reopen a memory, take back a reinforcement, and remember it."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func

from shared.dreams.runs import undone_change_queries
from shared.dreams.runs.applied_changes import ACTOR, reason_of
from shared.dreams.runs.run_diff import Change, RunDiff
from shared.dreams.runs.undone_change_queries import CLOSED, MERGED
from shared.foundation.origin import Origin
from shared.foundation.scope import Caller
from shared.foundation.stages import DreamPass
from shared.infra.transaction import Transaction
from shared.memory.longterm import history, history_queries, new_rows, restoring, scope_queries
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory, Source

_REASON = "a dream was undone"


async def restore(tx: Transaction, caller: Caller, memory: Memory, change: Change) -> Memory:
    """Make a memory live again in the state that it had before the run archived it."""
    values = restoring.live_columns(memory, change["previous_state"] or "final")
    restored_memory = await memory_queries.update_columns(tx, memory.id, values)
    await history.add(tx, caller.key_id, "restored", [restored_memory], _REASON)
    return restored_memory


async def reopen(tx: Transaction, caller: Caller, memory: Memory, change: Change) -> Memory:
    """Let a memory be valid again until the end that it had before the run closed it."""
    reopened_memory = await memory_queries.reopen(tx, memory, change["previous_valid_until"])
    await history.add_change(tx, caller.key_id, "reopened", memory, reopened_memory, _REASON)
    return reopened_memory


async def ends_as_closed(tx: Transaction, memory: Memory, change: Change) -> bool:
    """Tell whether a memory still ends when the run closed it, whatever else was changed since."""
    closed = await history_queries.find_version(tx, memory.id, change["version"])
    if closed is None or not set(memory.superseded_by) <= set(change["successors"]):
        return False
    return memory.valid_until is not None and memory.valid_until == _moment(closed["valid_until"])


async def duplicate_reason(tx: Transaction, memory: Memory) -> str | None:
    """Return why a memory can't be live because of another one with its text, or None."""
    fingerprint = await scope_queries.get_fingerprint(tx, memory)
    duplicate_id = await memory_queries.find_duplicate(tx, memory.scope, fingerprint, memory.id)
    return None if duplicate_id is None else f"memory '{duplicate_id}' says this already"


async def take_back_reinforcement(
    tx: Transaction, caller: Caller, run_id: str, memory: Memory, change: Change, *, is_untouched: bool
) -> Memory:
    """Take back what a run added to a memory.

    Of one that was changed since, these are only the observations and their sources.
    """
    added_sources = {Source(**source) for source in change["added_sources"] or ()}
    values: dict[str, Any] = {
        "reinforcement_count": max(1, memory.reinforcement_count - change["added_count"]),
        "sources": [source.model_dump() for source in memory.sources if source not in added_sources],
        "version": memory.version + 1,
    }
    if is_untouched:
        reasons = [reason_of(run_id, name) for name in DreamPass]
        before = await history_queries.find_before(tx, memory.id, ACTOR, reasons)
        values |= _widened_before(memory, before) if before else {}
    after = await memory_queries.update_columns(tx, memory.id, values)
    await history.add_change(tx, caller.key_id, "restored", memory, after, _REASON)
    return after


def _widened_before(memory: Memory, before: dict[str, Any]) -> dict[str, Any]:
    """Return what a memory had before of all that `reinforce.widen` changes."""
    fields = {name: before[name] for name in ("tags", "metadata", "importance")}
    fields |= {name: _moment(before[name]) for name in ("valid_from", "expires_at")}
    derived = new_rows.derived_columns(memory.model_copy(update=fields))
    # History of an earlier version does not have the origin.
    origin = Origin(**before["origin"]).columns() if "origin" in before else {}
    return fields | origin | {"search_terms": func.array_to_tsvector(derived["search_terms"])}


def _moment(recorded: str | None) -> datetime | None:
    return None if recorded is None else datetime.fromisoformat(recorded)


async def remember(
    tx: Transaction, diff: RunDiff, restored: Sequence[Memory], removed_ids: Collection[str]
) -> None:
    """Remember what was undone: the joined memories of each merge, and each memory that was archived."""
    by_id = {memory.id: memory for memory in restored}
    taken_back = {change["entry_id"] for change in diff.reinforcements}
    thirds = {memory.id: memory for memory in await memory_queries.read(tx, list(taken_back))}
    for successor_id in [*removed_ids, *taken_back]:
        members = [by_id[source_id] for source_id in diff.sources_of(successor_id) if source_id in by_id]
        members += [thirds[successor_id]] if members and successor_id in thirds else []
        group_id = f"{diff.run_id}/{successor_id}"
        await undone_change_queries.add_group(tx, group_id, members, MERGED)
    for change in diff.archivings:
        memory = by_id.get(change["entry_id"])
        if memory is not None and not change["successors"]:
            group_id = f"{diff.run_id}/{memory.id}"
            await undone_change_queries.add_group(tx, group_id, [memory], change["reason"] or "archived")


async def remember_reopened(tx: Transaction, diff: RunDiff, reopened: Mapping[str, Memory]) -> None:
    """Remember which memories were closed by the run and are valid again."""
    for memory in reopened.values():
        group_id = f"{diff.run_id}/{memory.id}/closed"
        await undone_change_queries.add_group(tx, group_id, [memory], CLOSED)
