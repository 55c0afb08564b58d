"""Every statement on observations. Functions take the caller's transaction and never commit."""

from collections.abc import Sequence
from datetime import datetime

import uuid_utils
from sqlalchemy import ARRAY, ColumnElement, Text, func, insert, literal, select

from shared.conversation.observations import index_document
from shared.conversation.observations.observation import Observation, ObservationDraft
from shared.conversation.observations.table import READ_COLUMNS, observation
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.foundation.scope import Scope
from shared.infra.postgres import is_any_of, keyset_after, tenant_filter, visible_scope
from shared.infra.transaction import Transaction
from shared.search.index.points import IndexDocument
from shared.search.text import indexed_text, tsvector


async def insert_observation(tx: Transaction, session: Session, draft: ObservationDraft) -> Observation:
    """Insert an observation of a locked session and return it."""
    terms = literal(tsvector.terms_of(index_document.keyword_text(draft)), ARRAY(Text))
    values = {
        "tenant": session.tenant,
        "id": str(uuid_utils.uuid7()),
        "session_id": session.id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "search_terms": func.array_to_tsvector(terms),
        **draft.model_dump(),
    }
    statement = insert(observation).values(values).returning(*READ_COLUMNS)
    return Observation.from_row((await tx.execute(statement)).mappings().one())


async def list_page(
    tx: Transaction,
    session: Session,
    limit: int,
    after: tuple[datetime, str] | None = None,
    kind: str | None = None,
) -> list[Observation]:
    """Return observations of a session, newest first.

    `after` is the (created_at, id) of the last observation of the previous page.
    """
    conditions = [tenant_filter(observation, session.tenant), observation.c.session_id == session.id]
    if kind is not None:
        conditions.append(observation.c.kind == kind)
    if after is not None:
        created_at, observation_id = after
        keys = ((observation.c.created_at, created_at, True), (observation.c.id, observation_id, False))
        conditions.append(keyset_after(*keys))
    newest_first = (observation.c.created_at.desc(), observation.c.id)
    statement = select(*READ_COLUMNS).where(*conditions).order_by(*newest_first).limit(limit)
    return [Observation.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_by_ids(
    tx: Transaction, ids: Sequence[str], *conditions: ColumnElement[bool]
) -> list[Observation]:
    """Return the existing observations among `ids` that meet the conditions, in no particular order."""
    where = (tenant_filter(observation, tx.tenant), is_any_of(observation.c.id, ids))
    rows = await tx.execute(select(*READ_COLUMNS).where(*where, *conditions))
    return [Observation.from_row(row) for row in rows.mappings()]


async def load_documents(tx: Transaction, record_ids: Sequence[str]) -> list[IndexDocument]:
    """Return the index documents of a tenant's observations, by record id."""
    observations = await list_by_ids(tx, record_ids)
    return [index_document.document(observation) for observation in observations]


async def list_matching(
    tx: Transaction, terms: Sequence[str], limit: int, *conditions: ColumnElement[bool]
) -> list[Observation]:
    """Return observations that contain any of the terms and meet the conditions, best match first."""
    if not terms:
        return []
    matches, rank = tsvector.matches_any(observation.c.search_terms, terms)
    statement = select(*READ_COLUMNS).where(*conditions, matches)
    best_first = statement.order_by(rank.desc(), observation.c.created_at.desc()).limit(limit)
    return [Observation.from_row(row) for row in (await tx.execute(best_first)).mappings()]


def visible(scope: Scope) -> ColumnElement[bool]:
    """Return the condition that a scope sees an observation: the agent's common ones and its user's.

    Observations of expired sessions are not visible.
    """
    return visible_scope(observation, scope) & session_queries.session_is_live(observation)


async def embedding_texts(tx: Transaction, session_ids: Sequence[str]) -> dict[str, str]:
    """Return the embedding text of every observation of these sessions, by id."""
    where = (tenant_filter(observation, tx.tenant), is_any_of(observation.c.session_id, session_ids))
    rows = await tx.execute(select(observation.c.id, observation.c.content).where(*where))
    return {row.id: indexed_text.embedding_text(row.content) for row in rows}


async def list_ids(tx: Transaction, session_ids: Sequence[str]) -> list[str]:
    """Return the ids of the observations of these sessions."""
    where = (tenant_filter(observation, tx.tenant), is_any_of(observation.c.session_id, session_ids))
    return list((await tx.scalars(select(observation.c.id).where(*where))).all())


async def versions(tx: Transaction, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the index version of each of these observations that exists, by id."""
    where = (tenant_filter(observation, tx.tenant), observation.c.id.in_(record_ids))
    rows = await tx.scalars(select(observation.c.id).where(*where))
    return dict.fromkeys(rows, index_document.VERSION)


async def count(tx: Transaction) -> int:
    """Return the number of a tenant's observations."""
    statement = select(func.count()).select_from(observation).where(tenant_filter(observation, tx.tenant))
    return int(await tx.scalar(statement) or 0)


async def page_versions(tx: Transaction, after: str, limit: int) -> dict[str, int]:
    """Return one page of a tenant's observations, ordered by id, as id → index version."""
    where = (tenant_filter(observation, tx.tenant), observation.c.id > after)
    rows = await tx.scalars(select(observation.c.id).where(*where).order_by(observation.c.id).limit(limit))
    return dict.fromkeys(rows, index_document.VERSION)
