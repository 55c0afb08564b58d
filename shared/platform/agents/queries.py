"""Every statement on agent roots, their texts and their files."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import uuid_utils
from sqlalchemy import ColumnElement, and_, delete, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.postgres import tenant_filter
from shared.platform.agents.agent import Agent, AgentFile, AgentText, TextDraft
from shared.platform.agents.table import agent, agent_file, agent_text

_LISTED = (
    agent_file.c.name,
    agent_file.c.content_type,
    func.octet_length(agent_file.c.content).label("size_bytes"),
    agent_file.c.updated_at.label("modified"),
)


def _is(tenant: str, agent_id: str) -> ColumnElement[bool]:
    return and_(tenant_filter(agent, tenant), agent.c.id == agent_id)


async def get(connection: AsyncConnection, tenant: str, agent_id: str) -> Agent | None:
    """Return an agent's root."""
    row = (await connection.execute(select(agent).where(_is(tenant, agent_id)))).mappings().one_or_none()
    return None if row is None else Agent.from_row(row)


async def lock(connection: AsyncConnection, tenant: str, agent_id: str) -> Agent:
    """Return an agent's root, made if it is new, and hold it for the transaction."""
    await connection.execute(insert(agent).values(tenant=tenant, id=agent_id).on_conflict_do_nothing())
    statement = select(agent).where(_is(tenant, agent_id)).with_for_update()
    return Agent.from_row((await connection.execute(statement)).mappings().one())


async def change(connection: AsyncConnection, root: Agent, changed: dict[str, Any]) -> Agent:
    """Change a root that is held."""
    statement = update(agent).where(_is(root.tenant, root.id)).values(changed | {"updated_at": func.now()})
    return Agent.from_row((await connection.execute(statement.returning(agent))).mappings().one())


async def default_store_types(connection: AsyncConnection, tenant: str, agent_id: str) -> list[str] | None:
    """Return what an agent's sessions store in when they name nothing."""
    types: list[str] | None = await connection.scalar(
        select(agent.c.store_types).where(_is(tenant, agent_id))
    )
    return types


async def add_texts(connection: AsyncConnection, root: Agent, drafts: Sequence[TextDraft]) -> list[AgentText]:
    """Add texts to an agent whose root is held; they are listed in this order."""
    rows = [
        {"tenant": root.tenant, "agent_id": root.id, "id": str(uuid_utils.uuid7()), **draft.model_dump()}
        for draft in drafts
    ]
    if not rows:
        return []
    # The wall clock: a transaction that waited for the root comes after the one it waited for.
    now = await connection.scalar(select(func.clock_timestamp()))
    values = [row | {"created_at": now} for row in rows]
    added = (await connection.execute(insert(agent_text).values(values).returning(agent_text))).mappings()
    return sorted((AgentText.from_row(row) for row in added), key=lambda one: one.id)


def _texts_of(tenant: str, agent_id: str) -> ColumnElement[bool]:
    return and_(tenant_filter(agent_text, tenant), agent_text.c.agent_id == agent_id)


async def texts(
    connection: AsyncConnection, tenant: str, agent_id: str, limit: int, after: tuple[datetime, str] | None
) -> list[AgentText]:
    """Return an agent's texts in the order they came; `after` is the place of the last one seen."""
    place = tuple_(agent_text.c.created_at, agent_text.c.id)
    statement = select(agent_text).where(_texts_of(tenant, agent_id))
    if after is not None:
        statement = statement.where(place > after)
    ordered = statement.order_by(agent_text.c.created_at, agent_text.c.id).limit(limit)
    return [AgentText.from_row(row) for row in (await connection.execute(ordered)).mappings()]


async def text(connection: AsyncConnection, tenant: str, agent_id: str, text_id: str) -> AgentText | None:
    """Return one text of an agent."""
    mine = (_texts_of(tenant, agent_id), agent_text.c.id == text_id)
    row = (await connection.execute(select(agent_text).where(*mine))).mappings().one_or_none()
    return None if row is None else AgentText.from_row(row)


async def remove_texts(
    connection: AsyncConnection, tenant: str, agent_id: str, text_id: str | None = None
) -> list[str]:
    """Delete one text of an agent, or all of them; return the ids of those that were there."""
    statement = delete(agent_text).where(_texts_of(tenant, agent_id))
    if text_id is not None:
        statement = statement.where(agent_text.c.id == text_id)
    return list((await connection.scalars(statement.returning(agent_text.c.id))).all())


def _files_of(tenant: str, agent_id: str) -> ColumnElement[bool]:
    return and_(tenant_filter(agent_file, tenant), agent_file.c.agent_id == agent_id)


async def put_file(
    connection: AsyncConnection, root: Agent, name: str, content: bytes, content_type: str
) -> AgentFile:
    """Write a file of an agent whose root is held."""
    changed = {"content": content, "content_type": content_type}
    named = {"tenant": root.tenant, "agent_id": root.id, "name": name}
    statement = insert(agent_file).values(named | changed)
    statement = statement.on_conflict_do_update(
        index_elements=list(agent_file.primary_key), set_=changed | {"updated_at": func.now()}
    )
    row = (await connection.execute(statement.returning(*_LISTED))).mappings().one()
    return AgentFile(**row)


async def files(connection: AsyncConnection, tenant: str, agent_id: str) -> list[AgentFile]:
    """Return an agent's files by name, without their content."""
    statement = select(*_LISTED).where(_files_of(tenant, agent_id)).order_by(agent_file.c.name)
    return [AgentFile(**row) for row in (await connection.execute(statement)).mappings()]


async def file(
    connection: AsyncConnection, tenant: str, agent_id: str, name: str
) -> tuple[bytes, str] | None:
    """Return the content of a file and its content type."""
    mine = (_files_of(tenant, agent_id), agent_file.c.name == name)
    columns = (agent_file.c.content, agent_file.c.content_type)
    row = (await connection.execute(select(*columns).where(*mine))).one_or_none()
    return None if row is None else (bytes(row.content), row.content_type)


async def remove_file(connection: AsyncConnection, tenant: str, agent_id: str, name: str) -> bool:
    """Delete a file; tell whether it was there."""
    mine = (_files_of(tenant, agent_id), agent_file.c.name == name)
    return (await connection.execute(delete(agent_file).where(*mine))).rowcount > 0
