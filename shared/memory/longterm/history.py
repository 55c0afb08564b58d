"""The history of memories: who did what, when and why. Deleting a memory deletes its history."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from shared.infra.transaction import Transaction
from shared.memory.longterm import history_queries
from shared.memory.longterm.memory import Memory

_RECORDED_FIELDS = (
    *("content", "category", "tags", "metadata", "importance", "state", "superseded_by", "version"),
    *("decided_by", "verdict", "judge_model", "contested_with"),
)
_RECORDED_TIMES = ("occurred_at", "valid_from", "valid_until", "expires_at")


async def add(
    tx: Transaction, actor: str, action: str, memories: Sequence[Memory], reason: str | None = None
) -> None:
    """Add the same action to the history of several memories, with their present content."""
    rows = [_row(actor, action, memory, reason) | {"after": _fields(memory)} for memory in memories]
    await history_queries.insert_items(tx, rows)


async def add_update(
    tx: Transaction, actor: str, before: Memory, after: Memory, reason: str | None = None
) -> None:
    """Add an update to a memory's history, with its fields before and after."""
    await add_change(tx, actor, "updated", before, after, reason)


async def add_change(
    tx: Transaction, actor: str, action: str, before: Memory, after: Memory, reason: str | None = None
) -> None:
    """Add an action to a memory's history, with its fields before and after."""
    await add_changes(tx, actor, action, [(before, after)], reason)


async def add_changes(
    tx: Transaction,
    actor: str,
    action: str,
    pairs: Sequence[tuple[Memory, Memory]],
    reason: str | None = None,
) -> None:
    """Add the same action to the history of several memories, given as (before, after)."""
    rows = [
        _row(actor, action, after, reason) | {"before": _fields(before), "after": _fields(after)}
        for before, after in pairs
    ]
    await history_queries.insert_items(tx, rows)


def _row(actor: str, action: str, memory: Memory, reason: str | None) -> dict[str, Any]:
    return {
        "tenant": memory.tenant,
        "memory_id": memory.id,
        "actor": actor,
        "action": action,
        "reason": reason,
    }


def _fields(memory: Memory) -> dict[str, Any]:
    # Field by field, because pydantic's dump of some of the fields takes half the time of a batch of saves.
    fields: dict[str, Any] = {name: getattr(memory, name) for name in _RECORDED_FIELDS}
    fields["origin"] = {
        "channel": memory.origin.channel,
        "trust": memory.origin.trust,
        "key_id": memory.origin.key_id,
    }
    return fields | {name: _to_json(getattr(memory, name)) for name in _RECORDED_TIMES}


def _to_json(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None
