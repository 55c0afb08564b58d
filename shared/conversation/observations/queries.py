"""Every statement on observations."""

from collections.abc import Sequence
from datetime import datetime

import uuid_utils
from sqlalchemy import ARRAY, ColumnElement, Text, and_, func, insert, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.observations import index_document
from shared.conversation.observations.observation import Observation, ObservationDraft
from shared.conversation.observations.table import READ_COLUMNS, observation
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.foundation.scope import Scope
from shared.infra.postgres import is_any_of, tenant_filter
from shared.search.text import indexed_text, tsvector


async def insert_rows(connection: AsyncConnection, session: Session, draft: ObservationDraft) -> Observation:
    """Insert an observation of a locked session."""
    words = literal(tsvector.terms_of(index_document.keywords(draft)), ARRAY(Text))
    values = {
        "tenant": session.tenant,
        "id": str(uuid_utils.uuid7()),
        "session_id": session.id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "search_terms": func.array_to_tsvector(words),
        **draft.model_dump(),
    }
    statement = insert(observation).values(values).returning(*READ_COLUMNS)
    return Observation.from_row((await connection.execute(statement)).mappings().one())


async def page(
    connection: AsyncConnection,
    session: Session,
    limit: int,
    after: tuple[datetime, str] | None = None,
    kind: str | None = None,
) -> list[Observation]:
    """Return observations of a session, the newest first; `after` is the place of the last one seen."""
    conditions = [tenant_filter(observation, session.tenant), observation.c.session_id == session.id]
    if kind is not None:
        conditions.append(observation.c.kind == kind)
    if after is not None:
        moment, observation_id = after
        same = and_(observation.c.created_at == moment, observation.c.id > observation_id)
        conditions.append(or_(observation.c.created_at < moment, same))
    ordered = (
        select(*READ_COLUMNS).where(*conditions).order_by(observation.c.created_at.desc(), observation.c.id)
    )
    return [Observation.from_row(row) for row in (await connection.execute(ordered.limit(limit))).mappings()]


async def read(
    connection: AsyncConnection, tenant: str, ids: Sequence[str], *conditions: ColumnElement[bool]
) -> list[Observation]:
    """Return those of these observations that there are and that meet the conditions, in no order."""
    mine = (tenant_filter(observation, tenant), is_any_of(observation.c.id, ids))
    rows = await connection.execute(select(*READ_COLUMNS).where(*mine, *conditions))
    return [Observation.from_row(row) for row in rows.mappings()]


async def list_matching(
    connection: AsyncConnection, terms: Sequence[str], limit: int, *conditions: ColumnElement[bool]
) -> list[Observation]:
    """Return observations that hold any of these words and meet the conditions, the likeliest first."""
    if not terms:
        return []
    holds, rank = tsvector.matches_any(observation.c.search_terms, terms)
    statement = select(*READ_COLUMNS).where(*conditions, holds)
    ordered = statement.order_by(rank.desc(), observation.c.created_at.desc()).limit(limit)
    return [Observation.from_row(row) for row in (await connection.execute(ordered)).mappings()]


def visible(scope: Scope) -> ColumnElement[bool]:
    """Return the condition of what a scope sees: the agent's common observations, and its user's."""
    common = observation.c.user_id.is_(None)
    whose = common if scope.user_id is None else or_(common, observation.c.user_id == scope.user_id)
    mine = tenant_filter(observation, scope.tenant) & (observation.c.agent_id == scope.agent_id) & whose
    return mine & session_queries.session_is_live(observation)


async def embedding_texts(
    connection: AsyncConnection, tenant: str, session_ids: Sequence[str]
) -> dict[str, str]:
    """Return what was embedded of every observation of these sessions, by id."""
    mine = (tenant_filter(observation, tenant), observation.c.session_id.in_(session_ids))
    rows = await connection.execute(select(observation.c.id, observation.c.content).where(*mine))
    return {row.id: indexed_text.embedding_text(row.content) for row in rows}


async def versions(connection: AsyncConnection, tenant: str, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the version of each of these observations that exists."""
    mine = (tenant_filter(observation, tenant), observation.c.id.in_(record_ids))
    rows = await connection.scalars(select(observation.c.id).where(*mine))
    return dict.fromkeys(rows, index_document.VERSION)


async def all_versions(connection: AsyncConnection, tenant: str, after: str, limit: int) -> dict[str, int]:
    """Page through a tenant's observations by id, as id → version."""
    mine = (tenant_filter(observation, tenant), observation.c.id > after)
    rows = await connection.scalars(
        select(observation.c.id).where(*mine).order_by(observation.c.id).limit(limit)
    )
    return dict.fromkeys(rows, index_document.VERSION)
