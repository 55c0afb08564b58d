"""Statements of reindexing, retention and erasure on long-term memories."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import (
    func,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.postgres import tenant_filter
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.queries import select_memories
from shared.memory.longterm.table import memory


async def of_user(
    connection: AsyncConnection, tenant: str, user_id: str, session_ids: Sequence[str]
) -> list[Memory]:
    """Return and hold every entry of a user or said in these sessions, of any agent, archived ones too."""
    source = func.jsonb_array_elements(memory.c.sources).table_valued("value")
    said_there = source.c.value.op("->>")("session_id").in_(session_ids)
    theirs = or_(memory.c.user_id == user_id, select(source.c.value).where(said_there).exists())
    held = select(memory).where(tenant_filter(memory, tenant), theirs).order_by(memory.c.id).with_for_update()
    return await select_memories(connection, held)


async def list_archived_before(
    connection: AsyncConnection, tenant: str, age: timedelta, limit: int
) -> list[str]:
    """Return ids of entries archived longer ago than `age`."""
    old = memory.c.archived_at < func.now() - age
    statement = select(memory.c.id).where(tenant_filter(memory, tenant), old).limit(limit)
    return list((await connection.scalars(statement)).all())


async def versions(connection: AsyncConnection, tenant: str, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the current version of each of these entries that exists."""
    mine = (tenant_filter(memory, tenant), memory.c.id.in_(record_ids))
    rows = await connection.execute(select(memory.c.id, memory.c.version).where(*mine))
    return {row.id: row.version for row in rows}


async def all_versions(connection: AsyncConnection, tenant: str, after: str, limit: int) -> dict[str, int]:
    """Page through a tenant's entries by id, as id → version."""
    mine = (tenant_filter(memory, tenant), memory.c.id > after)
    statement = select(memory.c.id, memory.c.version).where(*mine).order_by(memory.c.id).limit(limit)
    return {row.id: row.version for row in await connection.execute(statement)}
