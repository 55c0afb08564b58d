"""Every statement on the history of memories. Functions use the caller's transaction and never commit."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import BigInteger, DateTime, delete, func, select, text

from shared.foundation.stages import MemoryState
from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.longterm.table import memory_history

_INSERT = text(
    """
    INSERT INTO memory_history (tenant, memory_id, actor, action, reason, before, after)
    SELECT r.tenant, r.memory_id, r.actor, r.action, r.reason, r.before, r.after
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
        tenant text, memory_id text, actor text, action text, reason text, before jsonb, after jsonb)
    """
)


async def insert_items(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert history items."""
    if rows:
        encoded = orjson.dumps([dict(row) for row in rows]).decode()
        await tx.fetch(_INSERT, {"rows": encoded})


async def list_for_memory(tx: Transaction, memory_id: str) -> list[dict[str, Any]]:
    """Return a memory's history, oldest first."""
    names = ("created_at", "actor", "action", "reason", "before", "after")
    columns = [memory_history.c[name] for name in names]
    of_memory = (tenant_filter(memory_history, tx.tenant), memory_history.c.memory_id == memory_id)
    rows = await tx.execute(select(*columns).where(*of_memory).order_by(memory_history.c.id))
    return [dict(zip(names, row, strict=True)) for row in rows]


async def expire(tx: Transaction, age: timedelta) -> int:
    """Delete history items older than `age`, and return how many."""
    is_old = (tenant_filter(memory_history, tx.tenant), memory_history.c.created_at < func.now() - age)
    return (await tx.execute(delete(memory_history).where(*is_old))).rowcount


async def find_before(
    tx: Transaction, memory_id: str, actor: str, reasons: Collection[str]
) -> dict[str, Any] | None:
    """Return the fields of a memory before the first action of this actor for one of these reasons."""
    statement = (
        select(memory_history.c.before)
        .where(tenant_filter(memory_history, tx.tenant), memory_history.c.memory_id == memory_id)
        .where(memory_history.c.actor == actor, memory_history.c.reason.in_(reasons))
        .where(memory_history.c.before.is_not(None))
        .order_by(memory_history.c.id)
        .limit(1)
    )
    fields: dict[str, Any] | None = await tx.scalar(statement)
    return fields


async def find_end_before_closing(tx: Transaction, memory_id: str) -> datetime | None:
    """Return until when a memory had been valid before it was last closed; None is open."""
    end = memory_history.c.before["valid_until"].astext.cast(DateTime(timezone=True))
    statement = (
        select(end)
        .where(tenant_filter(memory_history, tx.tenant), memory_history.c.memory_id == memory_id)
        .where(memory_history.c.action == "closed")
        .order_by(memory_history.c.id.desc())
        .limit(1)
    )
    valid_until: datetime | None = await tx.scalar(statement)
    return valid_until


async def find_version(tx: Transaction, memory_id: str, version: int) -> dict[str, Any] | None:
    """Return the fields that a memory had in this version, or None if its history does not tell."""
    recorded_version = memory_history.c.after["version"].astext.cast(BigInteger)
    statement = (
        select(memory_history.c.after)
        .where(tenant_filter(memory_history, tx.tenant), memory_history.c.memory_id == memory_id)
        .where(recorded_version == version)
        .order_by(memory_history.c.id.desc())
        .limit(1)
    )
    fields: dict[str, Any] | None = await tx.scalar(statement)
    return fields


async def find_state_before_archive(tx: Transaction, memory_id: str) -> MemoryState:
    """Return the last state of a memory in which it was live; `final` if its history does not tell."""
    state = memory_history.c.after["state"].astext
    statement = (
        select(state)
        .where(tenant_filter(memory_history, tx.tenant), memory_history.c.memory_id == memory_id)
        .where(state != MemoryState.ARCHIVED)
        .order_by(memory_history.c.id.desc())
        .limit(1)
    )
    return MemoryState(await tx.scalar(statement) or MemoryState.FINAL)
