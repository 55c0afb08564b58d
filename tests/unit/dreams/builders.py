"""Build memories of a scope, and plans over them, for tests of dreams."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.dreams.verification.check import Snapshot
from shared.dreams.verification.plan import Deletion, Plan, Replacement
from shared.foundation.origin import Origin, Trust
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm.memory import Memory

SCOPE = Scope("acme", "helper", "mira")
START = datetime(2026, 1, 1, tzinfo=UTC)


def memory_id(number: int) -> str:
    """Return the id of the memory with this number."""
    return f"{number:012x}"


def memory(number: int, content: str = "User likes tea", **fields: Any) -> Memory:
    """Return a live memory of mira's, one hour younger for each number."""
    created_at = START + timedelta(hours=number)
    values: dict[str, Any] = {
        "id": memory_id(number),
        "content": content,
        "category": "general",
        "tags": [],
        "metadata": {},
        "importance": 0.5,
        "state": MemoryState.FINAL,
        "occurred_at": None,
        "source": None,
        "sources": [],
        "created_at": created_at,
        "updated_at": None,
        "last_seen_at": created_at,
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
        "origin": Origin(trust=Trust.AGENT),
    }
    return Memory.model_validate(values | fields)


def archived_memory(number: int, content: str = "User likes tea") -> Memory:
    """Return an archived memory."""
    return memory(number, content, archived_at=START, archive_reason="old", state=MemoryState.ARCHIVED)


def snapshot(*memories: Memory, scope_size: int | None = None, pruned_already: int = 0) -> Snapshot:
    """Return the snapshot that a plan is made from."""
    size = len(memories) if scope_size is None else scope_size
    return Snapshot(SCOPE, {item.id: item for item in memories}, size, pruned_already)


def replacement(content: str, *sources: int | str, **fields: Any) -> Replacement:
    """Return a replacement of the memories with these numbers or ids."""
    ids = tuple(source if isinstance(source, str) else memory_id(source) for source in sources)
    values: dict[str, Any] = {"category": None, "tags": (), "importance": None}
    return Replacement(content=content, source_ids=ids, **(values | fields))


def deletions(*numbers: int, reason: str = "ephemeral") -> list[Deletion]:
    """Return deletions of the memories with these numbers."""
    return [Deletion(memory_id(number), reason) for number in numbers]


def plan(*items: Replacement | Deletion) -> Plan:
    """Return a plan of these items, in their order."""
    return Plan(
        deletions=tuple(item for item in items if isinstance(item, Deletion)),
        replacements=tuple(item for item in items if isinstance(item, Replacement)),
    )
