"""What happened to an entry: who, when, what and why. A delete erases it with the content."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.postgres import tenant_filter
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import memory_history

_SHOWN = {"content", "category", "tags", "metadata", "importance", "occurred_at", "state"}


async def add(
    connection: AsyncConnection, actor: str, action: str, entries: Sequence[Memory], reason: str | None = None
) -> None:
    """Note the same action on several entries, with what they say now."""
    rows = [_row(actor, action, entry, reason) | {"after": _shown(entry)} for entry in entries]
    if rows:
        await connection.execute(insert(memory_history), rows)


async def add_update(connection: AsyncConnection, actor: str, before: Memory, after: Memory) -> None:
    """Note an edit, with what the entry said before and says now."""
    values = _row(actor, "updated", after, None) | {"before": _shown(before), "after": _shown(after)}
    await connection.execute(insert(memory_history).values(values))


def _row(actor: str, action: str, entry: Memory, reason: str | None) -> dict[str, Any]:
    return {"tenant": entry.tenant, "memory_id": entry.id, "actor": actor, "action": action, "reason": reason}


def _shown(entry: Memory) -> dict[str, Any]:
    return entry.model_dump(mode="json", include=_SHOWN)


async def list_for_memory(connection: AsyncConnection, tenant: str, entry_id: str) -> list[dict[str, Any]]:
    """Return an entry's history, oldest first."""
    names = ("created_at", "actor", "action", "reason", "before", "after")
    columns = [memory_history.c[name] for name in names]
    mine = (tenant_filter(memory_history, tenant), memory_history.c.memory_id == entry_id)
    rows = await connection.execute(select(*columns).where(*mine).order_by(memory_history.c.id))
    return [dict(zip(names, row, strict=True)) for row in rows]


async def erase(connection: AsyncConnection, tenant: str, ids: Sequence[str]) -> int:
    """Delete the history of entries; return how many notes went."""
    mine = (tenant_filter(memory_history, tenant), memory_history.c.memory_id.in_(ids))
    return (await connection.execute(delete(memory_history).where(*mine))).rowcount


async def expire(connection: AsyncConnection, tenant: str, age: timedelta) -> int:
    """Delete notes older than `age`; return how many."""
    old = memory_history.c.created_at < func.now() - age
    return (
        await connection.execute(delete(memory_history).where(tenant_filter(memory_history, tenant), old))
    ).rowcount


async def count(connection: AsyncConnection, tenant: str, ids: Sequence[str]) -> int:
    """Count the notes about entries."""
    mine = (tenant_filter(memory_history, tenant), memory_history.c.memory_id.in_(ids))
    return int(await connection.scalar(select(func.count()).where(*mine)) or 0)
