"""Update a memory by hand: a new version for the index, and an item in the history."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func
from sqlalchemy.exc import IntegrityError

from shared.foundation import errors, stages
from shared.foundation.scope import Caller
from shared.foundation.stages import MemoryState
from shared.memory.longterm import history, index_document, new_rows, queries, save
from shared.memory.longterm.memory import RECALLED_LINE_FIELDS, Memory, MemoryDraft
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources

_SEARCHABLE = {"content", "category", "tags", "metadata", "occurred_at"}


async def update(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    changes: Mapping[str, Any],
    reason: str | None = None,
) -> Memory:
    """Apply changes to fields of a memory and return it. The reason is kept in the history.

    Changes to what the fields hold already change nothing: no version, no history, no new recall. Raises
    errors.NotFound if the caller sees no such memory, and errors.Forbidden if it may only read it. Raises
    errors.Conflict if it is archived (the message names its successors), or if another memory has the new
    content already.
    """
    try:
        async with resources.postgres.for_tenant(caller.tenant) as connection:
            before = await queries.get(connection, caller, memory_id, lock=True)
            if before is None:
                raise errors.NotFound(f"no memory '{memory_id}'")
            require_writable(caller, before)
            columns = _changed_columns(before, changes)
            if not columns:
                return before
            duplicate_id = await queries.find_duplicate(
                connection, before.scope, columns["fingerprint"], memory_id
            )
            if duplicate_id is not None:
                raise errors.Conflict(f"memory '{duplicate_id}' says this already")
            after = await queries.update_columns(connection, caller.tenant, memory_id, columns)
            await history.add_update(connection, caller.key_id, before, after, reason)
            jobs = await save.enqueue_jobs(connection, caller.tenant, [after])
    except IntegrityError:  # a duplicate was saved between the check and the update
        raise errors.Conflict("another memory says this already") from None
    await resources.index_writer.write_through([index_document.document(after)], jobs)
    if after.state is MemoryState.PENDING:
        resources.publisher.wake(stages.ENRICH)
    return after


def require_writable(caller: Caller, memory: Memory) -> None:
    """Raise errors.Forbidden if the key reads this memory and may not change it: it is common to others."""
    owner = Owner(memory.agent_id, memory.user_id)
    rights.require(caller, Area.MEMORIES, Action.WRITE, owner, f"no memory '{memory.id}'")


def _changed_columns(before: Memory, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that really change, with those derived from them; none if nothing changes."""
    if before.archived_at is not None:
        successors = ", ".join(before.superseded_by) or "nothing"
        raise errors.Conflict(f"memory '{before.id}' is archived; it was superseded by {successors}")
    draft = MemoryDraft.model_validate(
        {**before.model_dump(include=set(MemoryDraft.model_fields)), **changes}
    ).validated()
    values = {name: getattr(draft, name) for name in changes} | (
        {"tags": list(draft.tags)} if "tags" in changes else {}
    )
    columns = {name: value for name, value in values.items() if value != getattr(before, name)}
    if not columns:
        return {}
    derived = new_rows.derived_columns(draft)
    return columns | {
        "fingerprint": derived["fingerprint"],
        "search_terms": func.array_to_tsvector(derived["search_terms"]),
        "version": before.version + bool(_SEARCHABLE & set(columns)),
        "content_version": before.content_version + bool(RECALLED_LINE_FIELDS & set(columns)),
        "updated_at": func.now(),
    }
