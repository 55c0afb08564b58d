"""The statements on observations that no other kind has. Functions take the caller's transaction."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, select

from shared.conversation.observations.observation import Observation, ObservationDraft
from shared.conversation.observations.record_type import OBSERVATION
from shared.conversation.observations.table import observation
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.infra.postgres import is_any_of, tenant_filter, visible_scope
from shared.infra.transaction import Transaction
from shared.search.text import indexed_text


async def insert(tx: Transaction, session: Session, draft: ObservationDraft, origin: Origin) -> Observation:
    """Insert an observation of a locked session and return it."""
    owner = {"session_id": session.id, "agent_id": session.agent_id, "user_id": session.user_id}
    return await OBSERVATION.insert(tx, owner | draft.model_dump(exclude={"trust"}), origin)


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
