"""Update a memory by hand: a new version for the index, and an item in the history."""

from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from sqlalchemy import func
from sqlalchemy.exc import IntegrityError

from shared.foundation import errors, versions
from shared.foundation.origin import Trust
from shared.foundation.scope import Caller
from shared.foundation.versions import Expected
from shared.infra.transaction import Transaction
from shared.memory.longterm import (
    history,
    new_rows,
    queries,
    save,
    scope_queries,
    tombstones,
)
from shared.memory.longterm.fingerprint import fingerprint_of
from shared.memory.longterm.memory import RECALLED_LINE_FIELDS, DecidedBy, Memory, MemoryDraft
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

_NEW_TEXT_COLUMNS: Mapping[str, Any] = {
    "failure_reason": None,
    "decided_by": DecidedBy.CALLER.value,
    "verdict": None,
    "judge_model": None,
}
OnChange = Callable[[RecordTransaction, Memory, Memory], Awaitable[None]]
"""What else a change of a memory changes, in its transaction: called with the memory before and after."""


async def update(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    changes: Mapping[str, Any],
    reason: str | None = None,
    expected: Expected | None = None,
    on_change: OnChange | None = None,
) -> Memory:
    """Apply changes to fields of a memory and return it. The reason is kept in the history.

    Changes to what the fields hold already change nothing: no version, no history, no new recall. Raises
    errors.NotFound if the caller sees no such memory, and errors.Forbidden if it may only read it. Raises
    errors.PreconditionFailed for a version that is not expected. Raises errors.Conflict if the memory is
    archived (the message names its successors), or if another memory says what it would say.
    """
    try:
        async with resources.transaction(caller.tenant) as tx:
            before = await lock_writable(tx, caller, memory_id, expected)
            after = await apply_changes(tx, caller, before, changes, "updated", reason)
            if on_change is not None:
                await on_change(tx, before, after)
    except IntegrityError:  # a duplicate was saved between the check and the update
        raise errors.Conflict("another memory says this already") from None
    return after


async def lock_writable(
    tx: Transaction, caller: Caller, memory_id: str, expected: Expected | None = None
) -> Memory:
    """Return a memory that the caller may change, locked. Raises errors as `update` does."""
    memory = await queries.get(tx, caller, memory_id, lock=True)
    if memory is None:
        raise errors.NotFound(f"no memory '{memory_id}'")
    require_writable(caller, memory)
    versions.check(f"memory '{memory_id}'", memory.version, expected)
    return memory


def require_writable(caller: Caller, memory: Memory) -> None:
    """Raise errors.Forbidden if the key reads this memory and may not change it: it is common to others."""
    owner = Owner(memory.agent_id, memory.user_id)
    rights.require(caller, Area.MEMORIES, Action.WRITE, owner, f"no memory '{memory.id}'")


def require_live(memory: Memory) -> None:
    """Raise errors.Conflict, naming its successors, if a memory is archived."""
    if memory.archived_at is not None:
        successors = ", ".join(memory.superseded_by) or "nothing"
        raise errors.Conflict(f"memory '{memory.id}' is archived; it was superseded by {successors}")


async def apply_changes(
    tx: RecordTransaction,
    caller: Caller,
    before: Memory,
    changes: Mapping[str, Any],
    action: str,
    reason: str | None,
    max_trust: Trust | None = None,
) -> Memory:
    """Change fields of a locked memory, note the action, and return the memory.

    A new text has the origin of its caller, and at most `max_trust`; `trust` among the changes lowers it.

    Raises errors.Conflict and IntegrityError as `update` does.
    """
    require_live(before)
    fields = {name: value for name, value in changes.items() if name != "trust"}
    columns = _changed_columns(before, fields)
    # What is said now is said by this key.
    origin = caller.origin.limited(max_trust) if "content" in columns else before.origin
    origin = origin.lowered(changes.get("trust"))
    if not columns and origin == before.origin:
        return before
    changed = before.model_copy(update=columns)
    if "superseded_by" in columns:
        await _require_known(tx, changed)
    await require_no_duplicate(tx, changed)
    columns |= origin.columns() | _derived_columns(changed, set(columns))
    after = await queries.update_columns(tx, before.id, columns)
    if after.content != before.content:
        await tombstones.remove(tx, after.scope, [after.content])
    await history.add_change(tx, caller.key_id, action, before, after, reason)
    await save.index(tx, [after])
    return after


def _changed_columns(before: Memory, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that really change. Raises errors.Invalid for values that break a rule."""
    # An expiry that was set before may be over in a moment, which is no fault of the changes.
    present = before.model_dump(include=set(MemoryDraft.model_fields) - {"expires_at"})
    draft = MemoryDraft.model_validate({**present, **changes}).validated()
    values = {name: getattr(draft, name) for name in changes if name != "superseded_by"}
    values |= {"tags": list(draft.tags)} if "tags" in changes else {}
    values |= _successors(draft, changes)
    return {name: value for name, value in values.items() if value != getattr(before, name)}


def _successors(draft: MemoryDraft, changes: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the successors after the changes: a live memory has some only if it is closed."""
    successors: list[str] = changes.get("superseded_by", [])
    if draft.valid_until is None and successors:
        raise errors.Invalid("superseded_by", "can be set of a memory with valid_until alone")
    is_named = {"superseded_by", "valid_until"} & changes.keys()
    is_kept = draft.valid_until is not None and "superseded_by" not in changes
    return {"superseded_by": list(dict.fromkeys(successors))} if is_named and not is_kept else {}


async def _require_known(tx: Transaction, memory: Memory) -> None:
    """Raise errors.Invalid for a successor that is the memory itself, or none of its scope."""
    known = await scope_queries.find_existing(tx, memory.scope, memory.superseded_by)
    if not set(memory.superseded_by) <= known - {memory.id}:
        raise errors.Invalid("superseded_by", "must be ids of other memories of the same agent and user")


async def require_no_duplicate(tx: Transaction, memory: Memory) -> None:
    """Raise errors.Conflict if another live memory says what this one says, and neither may have a double."""
    if not memory.is_deduplicated:
        return
    fingerprint = fingerprint_of(memory)
    duplicate_id = await queries.find_duplicate(tx, memory.scope, fingerprint, memory.id)
    if duplicate_id is not None:
        raise errors.Conflict(f"memory '{duplicate_id}' says this already")


def _derived_columns(changed: Memory, names: AbstractSet[str]) -> dict[str, Any]:
    """Return the columns that change with these of a memory."""
    derived = new_rows.derived_columns(changed)
    return {
        "fingerprint": derived["fingerprint"],
        "search_terms": func.array_to_tsvector(derived["search_terms"]),
        # Of every change that a caller can see, so that a condition on the version is sound.
        "version": changed.version + 1,
        "content_version": changed.content_version + bool(RECALLED_LINE_FIELDS & names),
        # These are about the text that was there before.
        **(_NEW_TEXT_COLUMNS if "content" in names else {}),
        "updated_at": func.now(),
    }
