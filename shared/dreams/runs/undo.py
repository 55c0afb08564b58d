"""Undo a run: restore what it archived and delete what it created, unless it was changed since.

A merged memory that was edited since stays, and its sources then stay archived, because the same fact
must not be stored twice. The response names everything that could not be undone, with the reason.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.dreams.runs import queries
from shared.dreams.runs.dream_run import Run, RunState
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.jobs.job import Job
from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.memory.longterm import history, save, scope_queries
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources

Change = dict[str, Any]


async def undo(resources: Resources, caller: Caller, run_id: str) -> dict[str, Any]:
    """Undo a run and return {id, restored, removed, kept: [{entry_id, reason}]}.

    Raises errors.NotFound if the caller may not see the run, and errors.Conflict if the run has not
    ended yet or was undone already.
    """
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        run = _require_undoable(
            caller, await queries.get(connection, caller.tenant, run_id, lock=True), run_id
        )
        changes = await queries.list_changes(connection, caller.tenant, run_id)
        removed_ids, kept_creations, jobs = await _remove_created(connection, caller, changes)
        kept_ids = {item["entry_id"] for item in kept_creations}
        restored_memories, kept_archived = await _restore_archived(connection, caller, changes, kept_ids)
        jobs += await save.enqueue_jobs(connection, caller.tenant, restored_memories)
        await queries.end_run(connection, run, RunState.UNDONE)
    await resources.index_writer.write_through(
        [memory_document.document(memory) for memory in restored_memories], jobs
    )
    restored_ids = [memory.id for memory in restored_memories]
    kept_items = [*kept_creations, *kept_archived]
    return {"id": run_id, "restored": restored_ids, "removed": removed_ids, "kept": kept_items}


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


async def _remove_created(
    connection: AsyncConnection, caller: Caller, changes: Sequence[Change]
) -> tuple[list[str], list[Change], list[Job]]:
    """Delete the unchanged memories that the run created; return their ids, what was kept, and the jobs."""
    created_versions = {
        change["entry_id"]: change["version"] for change in changes if change["action"] == "created"
    }
    locked_memories = await _lock(connection, caller, sorted(created_versions))
    to_delete = [
        memory for memory in locked_memories.values() if _is_unchanged(memory, created_versions[memory.id])
    ]
    deleted_ids = [memory.id for memory in to_delete]
    kept_items = [
        {
            "entry_id": memory_id,
            "reason": "it was deleted since" if memory_id not in locked_memories else "it was changed since",
        }
        for memory_id in created_versions
        if memory_id not in deleted_ids
    ]
    jobs, _ = await delete_memory_everywhere.delete_rows(connection, caller.tenant, to_delete)
    return deleted_ids, kept_items, jobs


async def _lock(connection: AsyncConnection, caller: Caller, ids: Sequence[str]) -> dict[str, Memory]:
    return {memory.id: memory for memory in await memory_queries.lock(connection, caller.tenant, ids)}


def _is_unchanged(memory: Memory, version: int) -> bool:
    return memory.version == version and memory.archived_at is None


async def _restore_archived(
    connection: AsyncConnection, caller: Caller, changes: Sequence[Change], kept_ids: set[str]
) -> tuple[list[Memory], list[Change]]:
    """Restore the memories that the run archived; return them and what was kept archived."""
    archivings = [change for change in changes if change["action"] == "archived"]
    locked_memories = await _lock(connection, caller, sorted(change["entry_id"] for change in archivings))
    restored_memories: list[Memory] = []
    kept_items: list[Change] = []
    for change in archivings:
        memory_id = change["entry_id"]
        reason = await _reason_to_keep(connection, locked_memories.get(memory_id), change, kept_ids)
        if reason is None:
            memory = await _restore(connection, caller, locked_memories[memory_id], change)
            restored_memories.append(memory)
        else:
            kept_items.append({"entry_id": memory_id, "reason": reason})
    return restored_memories, kept_items


async def _reason_to_keep(
    connection: AsyncConnection, memory: Memory | None, change: Change, kept_ids: set[str]
) -> str | None:
    if memory is None:
        return "it was deleted since"
    if memory.version != change["version"] or memory.archived_at is None:
        return "it was changed since"
    if kept_ids & set(change["successors"]):
        return "what it was merged into was changed since and stays"
    fingerprint = await scope_queries.get_fingerprint(connection, memory)
    duplicate_id = await memory_queries.find_duplicate(connection, memory.scope, fingerprint, memory.id)
    return None if duplicate_id is None else f"memory '{duplicate_id}' says this already"


async def _restore(connection: AsyncConnection, caller: Caller, memory: Memory, change: Change) -> Memory:
    values: dict[str, Any] = {
        "state": change["previous_state"] or "final",
        "archived_at": None,
        "archive_reason": None,
        "superseded_by": [],
        "version": memory.version + 1,
    }
    restored_memory = await memory_queries.update_columns(connection, caller.tenant, memory.id, values)
    await history.add(connection, caller.key_id, "restored", [restored_memory], "a dream was undone")
    return restored_memory
