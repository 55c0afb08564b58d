"""Undo a run: what it archived comes back, what it created goes, unless somebody changed it since.

Where a merged entry was edited since, it stays, and so do its sources in the archive: the fact
must not stand twice. The answer names everything that could not be undone, and why.
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
from shared.platform.resources import Resources

Change = dict[str, Any]


async def undo(resources: Resources, caller: Caller, run_id: str) -> dict[str, Any]:
    """Undo a run and return {restored, removed, kept: [{entry_id, reason}]}."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        run = await queries.get(connection, caller.tenant, run_id, lock=True)
        _check(caller, run, run_id)
        changes = await queries.changes(connection, caller.tenant, run_id)
        removed, kept, claims = await _remove_created(connection, caller, changes)
        restored, also_kept = await _restore_archived(
            connection, caller, changes, {one["entry_id"] for one in kept}
        )
        claims += await save.enqueue_jobs(connection, caller.tenant, restored)
        if run is not None:
            await queries.end_run(connection, run, RunState.UNDONE)
    await resources.index_writer.write_through(
        [memory_document.document(entry) for entry in restored], claims
    )
    ids = [entry.id for entry in restored]
    return {"id": run_id, "restored": ids, "removed": removed, "kept": [*kept, *also_kept]}


def _check(caller: Caller, run: Run | None, run_id: str) -> None:
    if run is None or not caller.may_see(run.agent_id, run.user_id):
        raise errors.NotFound(f"no dream run '{run_id}'")
    if run.state is RunState.RUNNING:
        raise errors.Conflict("the run has not ended yet")
    if run.state is RunState.UNDONE:
        raise errors.Conflict("the run has been undone already")


async def _remove_created(
    connection: AsyncConnection, caller: Caller, changes: Sequence[Change]
) -> tuple[list[str], list[Change], list[Job]]:
    created = {one["entry_id"]: one["version"] for one in changes if one["action"] == "created"}
    held = {
        entry.id: entry for entry in await memory_queries.lock(connection, caller.tenant, sorted(created))
    }
    doomed = [entry for entry in held.values() if _untouched(entry, created[entry.id])]
    kept = [
        {
            "entry_id": record_id,
            "reason": "it was deleted since" if record_id not in held else "it was changed since",
        }
        for record_id in created
        if record_id not in {entry.id for entry in doomed}
    ]
    claims, _ = await delete_memory_everywhere.delete_rows(connection, caller.tenant, doomed)
    return [entry.id for entry in doomed], kept, claims


def _untouched(entry: Memory, version: int) -> bool:
    return entry.version == version and entry.archived_at is None


async def _restore_archived(
    connection: AsyncConnection, caller: Caller, changes: Sequence[Change], standing: set[str]
) -> tuple[list[Memory], list[Change]]:
    archived = [one for one in changes if one["action"] == "archived"]
    ids = sorted(one["entry_id"] for one in archived)
    held = {entry.id: entry for entry in await memory_queries.lock(connection, caller.tenant, ids)}
    restored: list[Memory] = []
    kept: list[Change] = []
    for one in archived:
        reason = await _why_kept(connection, held.get(one["entry_id"]), one, standing)
        if reason is not None:
            kept.append({"entry_id": one["entry_id"], "reason": reason})
            continue
        entry = await _restore(connection, caller, held[one["entry_id"]], one)
        restored.append(entry)
    return restored, kept


async def _why_kept(
    connection: AsyncConnection, entry: Memory | None, change: Change, standing: set[str]
) -> str | None:
    if entry is None:
        return "it was deleted since"
    if entry.version != change["version"] or entry.archived_at is None:
        return "it was changed since"
    if standing & set(change["successors"]):
        return "what it was merged into was changed since and stays"
    fact = await scope_queries.fingerprint_of(connection, entry)
    twin = await memory_queries.find_duplicate(connection, entry.scope, fact, entry.id)
    return None if twin is None else f"memory '{twin}' says this already"


async def _restore(connection: AsyncConnection, caller: Caller, entry: Memory, change: Change) -> Memory:
    values: dict[str, Any] = {
        "state": change["previous_state"] or "final",
        "archived_at": None,
        "archive_reason": None,
        "superseded_by": [],
        "version": entry.version + 1,
    }
    restored = await memory_queries.update_columns(connection, caller.tenant, entry.id, values)
    await history.add(connection, caller.key_id, "restored", [restored], "a dream was undone")
    return restored
