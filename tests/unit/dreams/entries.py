"""Entries as they stand in a scope, and plans over them, in as few words as a test needs."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.dreams.verification.check import Snapshot
from shared.dreams.verification.plan import Deletion, Plan, Replacement
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm.memory import Memory

SCOPE = Scope("acme", "helper", "mira")
DAWN = datetime(2026, 1, 1, tzinfo=UTC)


def name(number: int) -> str:
    """Return the id of the entry with this number."""
    return f"{number:012x}"


def entry(number: int, content: str = "User likes tea", **fields: Any) -> Memory:
    """Return a live entry of mira's, one hour younger for each number."""
    at = DAWN + timedelta(hours=number)
    values: dict[str, Any] = {
        "id": name(number),
        "content": content,
        "category": "general",
        "tags": [],
        "metadata": {},
        "importance": 0.5,
        "state": MemoryState.FINAL,
        "occurred_at": None,
        "source": None,
        "sources": [],
        "created_at": at,
        "updated_at": None,
        "last_seen_at": at,
        "reinforcement_count": 1,
        "agent_id": SCOPE.agent_id,
        "user_id": SCOPE.user_id,
        "superseded_by": [],
        "derived_from": [],
        "archived_at": None,
        "archive_reason": None,
        "tenant": SCOPE.tenant,
        "version": 1,
        "content_version": 1,
    }
    return Memory.model_validate(values | fields)


def archived(number: int, content: str = "User likes tea") -> Memory:
    """Return an entry that is archived."""
    return entry(number, content, archived_at=DAWN, archive_reason="old", state=MemoryState.ARCHIVED)


def snapshot(*entries: Memory, scope_size: int | None = None, pruned_already: int = 0) -> Snapshot:
    """Return what a plan was made from."""
    size = len(entries) if scope_size is None else scope_size
    return Snapshot(SCOPE, {one.id: one for one in entries}, size, pruned_already)


def saving(content: str, *sources: int | str, **fields: Any) -> Replacement:
    """Return a replacement for the entries with these numbers, or of these ids."""
    ids = tuple(one if isinstance(one, str) else name(one) for one in sources)
    values: dict[str, Any] = {"category": None, "tags": (), "importance": None}
    return Replacement(content=content, source_ids=ids, **(values | fields))


def deleting(*numbers: int, reason: str = "ephemeral") -> list[Deletion]:
    """Return deletions of the entries with these numbers."""
    return [Deletion(name(number), reason) for number in numbers]


def plan(*items: Replacement | Deletion) -> Plan:
    """Return a plan of these items, in their order."""
    return Plan(
        deletions=tuple(one for one in items if isinstance(one, Deletion)),
        replacements=tuple(one for one in items if isinstance(one, Replacement)),
    )
