"""Every statement on agent profiles, their texts and their files."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import uuid_utils
from sqlalchemy import ColumnElement, and_, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from shared.infra.postgres import keyset_after, tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.agents.agent import Agent, AgentFile, AgentText, TextDraft
from shared.platform.agents.table import agent, agent_file, agent_text

_FILE_COLUMNS = (
    agent_file.c.name,
    agent_file.c.content_type,
    func.octet_length(agent_file.c.content).label("size_bytes"),
    agent_file.c.updated_at.label("modified"),
)


def _is_agent(tenant: str, agent_id: str) -> ColumnElement[bool]:
    return and_(tenant_filter(agent, tenant), agent.c.id == agent_id)


async def get(tx: Transaction, agent_id: str) -> Agent | None:
    """Return an agent's profile, or None if there is none."""
    statement = select(agent).where(_is_agent(tx.tenant, agent_id))
    row = (await tx.execute(statement)).mappings().one_or_none()
    return None if row is None else Agent.from_row(row)


async def lock(tx: Transaction, agent_id: str) -> Agent:
    """Lock an agent's profile until the transaction ends, create it if it is new, and return it."""
    await tx.execute(insert(agent).values(tenant=tx.tenant, id=agent_id).on_conflict_do_nothing())
    statement = select(agent).where(_is_agent(tx.tenant, agent_id)).with_for_update()
    return Agent.from_row((await tx.execute(statement)).mappings().one())


async def update_profile(tx: Transaction, profile: Agent, columns: dict[str, Any]) -> Agent:
    """Write columns of a locked profile and return it as it is now."""
    values = columns | {"updated_at": func.now()}
    statement = update(agent).where(_is_agent(profile.tenant, profile.id)).values(values)
    return Agent.from_row((await tx.execute(statement.returning(agent))).mappings().one())


async def default_store_types(tx: Transaction, agent_id: str) -> list[str] | None:
    """Return the store types of an agent's sessions that name none themselves."""
    types: list[str] | None = await tx.scalar(
        select(agent.c.store_types).where(_is_agent(tx.tenant, agent_id))
    )
    return types


async def add_texts(tx: Transaction, profile: Agent, drafts: Sequence[TextDraft]) -> list[AgentText]:
    """Add texts to an agent whose profile is locked. They are listed in this order."""
    rows = [
        {
            "tenant": profile.tenant,
            "agent_id": profile.id,
            "id": str(uuid_utils.uuid7()),
            **draft.model_dump(),
        }
        for draft in drafts
    ]
    if not rows:
        return []
    # The time of the statement, not of the transaction: a transaction that waited for the lock must
    # order its texts after those of the transaction that it waited for.
    now = await tx.scalar(select(func.clock_timestamp()))
    values = [row | {"created_at": now} for row in rows]
    statement = insert(agent_text).values(values).returning(agent_text)
    new_rows = (await tx.execute(statement)).mappings()
    return sorted((AgentText.from_row(row) for row in new_rows), key=lambda text: text.id)


def _texts_of(tenant: str, agent_id: str) -> ColumnElement[bool]:
    return and_(tenant_filter(agent_text, tenant), agent_text.c.agent_id == agent_id)


async def list_texts(
    tx: Transaction, agent_id: str, limit: int, after: tuple[datetime, str] | None
) -> list[AgentText]:
    """Return an agent's texts in the order they were added.

    `after` is (created_at, id) of the last text seen.
    """
    statement = select(agent_text).where(_texts_of(tx.tenant, agent_id))
    if after is not None:
        is_after = keyset_after(
            (agent_text.c.created_at, after[0], False), (agent_text.c.id, after[1], False)
        )
        statement = statement.where(is_after)
    ordered = statement.order_by(agent_text.c.created_at, agent_text.c.id).limit(limit)
    return [AgentText.from_row(row) for row in (await tx.execute(ordered)).mappings()]


async def list_text_ids(tx: Transaction, agent_id: str) -> list[str]:
    """Return the ids of all texts of an agent."""
    return list((await tx.scalars(select(agent_text.c.id).where(_texts_of(tx.tenant, agent_id)))).all())


async def get_text(tx: Transaction, agent_id: str, text_id: str) -> AgentText | None:
    """Return one text of an agent, or None if there is none of this id."""
    where = (_texts_of(tx.tenant, agent_id), agent_text.c.id == text_id)
    row = (await tx.execute(select(agent_text).where(*where))).mappings().one_or_none()
    return None if row is None else AgentText.from_row(row)


async def remove_texts(tx: Transaction, agent_id: str, text_id: str | None = None) -> list[str]:
    """Delete one text of an agent, or all of them, and return the ids of those that existed."""
    statement = delete(agent_text).where(_texts_of(tx.tenant, agent_id))
    if text_id is not None:
        statement = statement.where(agent_text.c.id == text_id)
    return list((await tx.scalars(statement.returning(agent_text.c.id))).all())


def _files_of(tenant: str, agent_id: str) -> ColumnElement[bool]:
    return and_(tenant_filter(agent_file, tenant), agent_file.c.agent_id == agent_id)


async def put_file(
    tx: Transaction, profile: Agent, name: str, content: bytes, content_type: str
) -> AgentFile:
    """Write a file of an agent whose profile is locked."""
    columns = {"content": content, "content_type": content_type}
    row_key = {"tenant": profile.tenant, "agent_id": profile.id, "name": name}
    statement = insert(agent_file).values(row_key | columns)
    statement = statement.on_conflict_do_update(
        index_elements=list(agent_file.primary_key), set_=columns | {"updated_at": func.now()}
    )
    row = (await tx.execute(statement.returning(*_FILE_COLUMNS))).mappings().one()
    return AgentFile(**row)


async def list_files(tx: Transaction, agent_id: str) -> list[AgentFile]:
    """Return an agent's files by name, without their content."""
    statement = select(*_FILE_COLUMNS).where(_files_of(tx.tenant, agent_id)).order_by(agent_file.c.name)
    return [AgentFile(**row) for row in (await tx.execute(statement)).mappings()]


async def read_file(tx: Transaction, agent_id: str, name: str) -> tuple[bytes, str] | None:
    """Return the content of a file and its content type, or None if there is no such file."""
    where = (_files_of(tx.tenant, agent_id), agent_file.c.name == name)
    columns = (agent_file.c.content, agent_file.c.content_type)
    row = (await tx.execute(select(*columns).where(*where))).one_or_none()
    return None if row is None else (bytes(row.content), row.content_type)


async def remove_file(tx: Transaction, agent_id: str, name: str) -> bool:
    """Delete a file and return whether it existed."""
    where = (_files_of(tx.tenant, agent_id), agent_file.c.name == name)
    return (await tx.execute(delete(agent_file).where(*where))).rowcount > 0
