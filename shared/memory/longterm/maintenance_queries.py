"""Statements of reindexing, retention and erasure on long-term memories."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.postgres import tenant_filter
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.queries import select_memories
from shared.memory.longterm.table import memory


async def lock_user_memories(
    connection: AsyncConnection, tenant: str, user_id: str, session_ids: Sequence[str]
) -> list[Memory]:
    """Return a user's memories and those with a source in these sessions, locked until the transaction ends.

    Memories of every agent are included, and archived ones too.
    """
    source = func.jsonb_array_elements(memory.c.sources).table_valued("value")
    in_sessions = source.c.value.op("->>")("session_id").in_(session_ids)
    concerns_user = or_(memory.c.user_id == user_id, select(source.c.value).where(in_sessions).exists())
    statement = select(memory).where(tenant_filter(memory, tenant), concerns_user)
    return await select_memories(connection, statement.order_by(memory.c.id).with_for_update())


async def list_archived_before(
    connection: AsyncConnection, tenant: str, age: timedelta, limit: int
) -> list[str]:
    """Return at most `limit` ids of memories that were archived longer ago than `age`."""
    is_old = (tenant_filter(memory, tenant), memory.c.archived_at < func.now() - age)
    return list((await connection.scalars(select(memory.c.id).where(*is_old).limit(limit))).all())


async def get_versions(connection: AsyncConnection, tenant: str, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the current version of each of these memories that exists, by id."""
    has_id = (tenant_filter(memory, tenant), memory.c.id.in_(record_ids))
    rows = await connection.execute(select(memory.c.id, memory.c.version).where(*has_id))
    return {row.id: row.version for row in rows}


async def count(connection: AsyncConnection, tenant: str) -> int:
    """Return the number of a tenant's memories, archived ones included."""
    statement = select(func.count()).select_from(memory).where(tenant_filter(memory, tenant))
    return int(await connection.scalar(statement) or 0)


async def page_versions(connection: AsyncConnection, tenant: str, after: str, limit: int) -> dict[str, int]:
    """Return one page of a tenant's memories, ordered by id, as id → current version."""
    follows = (tenant_filter(memory, tenant), memory.c.id > after)
    statement = select(memory.c.id, memory.c.version).where(*follows).order_by(memory.c.id).limit(limit)
    return {row.id: row.version for row in await connection.execute(statement)}
