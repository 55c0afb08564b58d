"""Statements of reindexing, retention and erasure on long-term memories."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.postgres import is_any_of, tenant_filter
from shared.memory.longterm.table import memory
from shared.search.text import indexed_text


class LockedMemory(NamedTuple):
    """What a deletion has to know about a memory."""

    id: str
    is_archived: bool


async def lock_of(
    connection: AsyncConnection,
    tenant: str,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    session_ids: Sequence[str] = (),
    limit: int | None = None,
) -> list[LockedMemory]:
    """Lock the memories of a user or an agent, and those with a source in these sessions; at most `limit`.

    Memories of every agent or user are included, and archived ones too.
    """
    concerned = memory.c.user_id == user_id if user_id else memory.c.agent_id == agent_id
    if session_ids:
        source = func.jsonb_array_elements(memory.c.sources).table_valued("value")
        in_sessions = is_any_of(source.c.value.op("->>")("session_id"), session_ids)
        concerned = or_(concerned, select(source.c.value).where(in_sessions).exists())
    columns = (memory.c.id, memory.c.archived_at.is_not(None))
    statement = select(*columns).where(tenant_filter(memory, tenant), concerned)
    ordered = statement.order_by(memory.c.id).limit(limit).with_for_update()
    return [LockedMemory(*row) for row in await connection.execute(ordered)]


async def count_of(
    connection: AsyncConnection, tenant: str, *, user_id: str | None = None, agent_id: str | None = None
) -> int:
    """Return the number of memories of a user, of all agents, or of an agent."""
    is_owned = memory.c.user_id == user_id if user_id else memory.c.agent_id == agent_id
    statement = select(func.count()).select_from(memory).where(tenant_filter(memory, tenant), is_owned)
    return int(await connection.scalar(statement) or 0)


async def list_embedding_texts(connection: AsyncConnection, tenant: str, ids: Sequence[str]) -> list[str]:
    """Return the texts of which these memories were embedded."""
    where = (tenant_filter(memory, tenant), is_any_of(memory.c.id, ids))
    speaker = memory.c.sources[0]["speaker"].astext.label("speaker")
    rows = await connection.execute(select(memory.c.content, speaker).where(*where))
    return [indexed_text.embedding_text(row.content, speaker=row.speaker) for row in rows]


async def list_archived_sources(connection: AsyncConnection, tenant: str, ids: Sequence[str]) -> list[str]:
    """Return the ids of the archived memories that one of these was derived from."""
    derived = select(func.unnest(memory.c.derived_from).label("id"))
    derived = derived.where(tenant_filter(memory, tenant), is_any_of(memory.c.id, ids))
    is_source = (memory.c.id.in_(derived), memory.c.archived_at.is_not(None))
    statement = select(memory.c.id).where(tenant_filter(memory, tenant), *is_source)
    return list((await connection.scalars(statement)).all())


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
