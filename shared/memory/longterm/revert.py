"""Return a memory to what it said in an earlier version, which is a new version."""

from typing import Any

from sqlalchemy.exc import IntegrityError

from shared.foundation import errors
from shared.foundation.origin import UNKNOWN, Trust
from shared.foundation.scope import Caller
from shared.foundation.versions import Expected
from shared.memory.longterm import history_queries, update
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.update import OnChange
from shared.platform.resources import Resources

_REVERTED_FIELDS = (
    *("content", "category", "tags", "metadata", "importance", "occurred_at"),
    *("valid_from", "valid_until", "expires_at"),
)


async def revert(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    version: int,
    reason: str | None = None,
    expected: Expected | None = None,
    on_change: OnChange | None = None,
) -> Memory:
    """Give a memory the fields that it had in a version of its history, and return it.

    Raises errors.NotFound if its history does not have the version, and errors as `update.update` does.
    """
    try:
        async with resources.transaction(caller.tenant) as tx:
            before = await update.lock_writable(tx, caller, memory_id, expected)
            fields = await history_queries.find_version(tx, memory_id, version)
            if fields is None:
                raise errors.NotFound(f"the history of memory '{memory_id}' has no version {version}")
            changes: dict[str, Any] = {name: fields.get(name) for name in _REVERTED_FIELDS}
            # The caller brings the text back, but did not write it.
            trust = Trust(fields["origin"]["trust"]) if "origin" in fields else UNKNOWN.trust
            after = await update.apply_changes(
                tx, caller, before, changes, "reverted", reason or f"to version {version}", trust
            )
            if on_change is not None:
                await on_change(tx, before, after)
    except IntegrityError:  # a duplicate was saved between the check and the update
        raise errors.Conflict("another memory says this already") from None
    return after
