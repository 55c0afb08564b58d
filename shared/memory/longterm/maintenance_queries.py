"""Statements of reindexing, retention and erasure on long-term memories."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    bindparam,
    exists,
    false,
    func,
    not_,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from shared.conversation.sessions.table import session
from shared.foundation.scope import Scope
from shared.foundation.stages import Pipeline, RecordKind
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.jobs.table import job
from shared.memory.longterm.labels import PROMOTION
from shared.memory.longterm.table import (
    IS_EVIDENCE,
    IS_TO_COMPACT,
    IS_UNEXPIRED,
    deleted_source_session,
    memory,
)
from shared.search.text import indexed_text

_NOTE_DELETED_SOURCES = text(
    """
    INSERT INTO deleted_source_session (tenant, user_id, session_id)
    SELECT s.tenant, s.user_id, s.id FROM session s
    WHERE s.tenant = :tenant AND s.id = ANY (:ids) AND s.user_id IS NOT NULL AND EXISTS (
        SELECT FROM memory m
        WHERE m.tenant = s.tenant AND m.user_id IS DISTINCT FROM s.user_id
          AND (m.source_session_id = s.id OR (jsonb_array_length(m.sources) > 1
               AND m.sources @> jsonb_build_array(jsonb_build_object('session_id', s.id)))))
    ON CONFLICT (tenant, user_id, session_id) DO UPDATE SET deleted_at = now()
    """
).bindparams(bindparam("ids", type_=ARRAY(Text)))


class LockedMemory(NamedTuple):
    """What a deletion has to know about a memory."""

    id: str
    is_archived: bool


async def lock_of(
    tx: Transaction,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    session_ids: Sequence[str] = (),
    limit: int | None = None,
) -> list[LockedMemory]:
    """Lock the memories of a user or an agent, and those with a source in these sessions; at most `limit`.

    Memories of every agent or user are included, and archived ones too. Of a user's deleted sessions, those
    count from which memories of others come (`note_deleted_sources`).
    """
    concerned = memory.c.user_id == user_id if user_id else memory.c.agent_id == agent_id
    if session_ids:
        concerned = or_(concerned, _comes_from(session_ids))
    for session_id, deleted_at in await _list_deleted_sources(tx, user_id) if user_id else ():
        # Another session of this id may have been opened since.
        concerned = or_(concerned, and_(_comes_from([session_id]), memory.c.created_at <= deleted_at))
    columns = (memory.c.id, memory.c.archived_at.is_not(None))
    statement = select(*columns).where(tenant_filter(memory, tx.tenant), concerned)
    ordered = statement.order_by(memory.c.id).limit(limit).with_for_update()
    return [LockedMemory(*row) for row in await tx.execute(ordered)]


def _comes_from(session_ids: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that a memory has a source in one of these sessions."""
    source = func.jsonb_array_elements(memory.c.sources).table_valued("value")
    in_sessions = is_any_of(source.c.value.op("->>")("session_id"), session_ids)
    return select(source.c.value).where(in_sessions).exists()


async def lock_promoted_from(tx: Transaction, scope: Scope, session_id: str) -> list[str]:
    """Lock the memories that were promoted from the scratchpad of a session, and are said by nobody else.

    Another session that is still there says them, or a caller who has saved them without one. Return the ids.
    """
    source = func.jsonb_array_elements(memory.c.sources).table_valued("value")
    other_id = source.c.value.op("->>")("session_id")
    is_open = (
        select(session.c.id).where(tenant_filter(session, scope.tenant), session.c.id == other_id).exists()
    )
    is_said_elsewhere = select(source.c.value).where(other_id != session_id, is_open).exists()
    has_only_sessions = func.jsonb_array_length(memory.c.sources) == memory.c.reinforcement_count
    where = (
        *(exact_scope(memory, scope), memory.c.metadata["source"].astext == PROMOTION),
        *(_comes_from([session_id]), has_only_sessions, ~is_said_elsewhere),
    )
    statement = select(memory.c.id).where(*where).order_by(memory.c.id).with_for_update()
    return list(await tx.scalars(statement))


async def _list_deleted_sources(tx: Transaction, user_id: str) -> list[tuple[str, datetime]]:
    table = deleted_source_session
    is_of_user = (tenant_filter(table, tx.tenant), table.c.user_id == user_id)
    rows = await tx.execute(select(table.c.session_id, table.c.deleted_at).where(*is_of_user))
    return [(row.session_id, row.deleted_at) for row in rows]


async def note_deleted_sources(tx: Transaction, session_ids: Sequence[str]) -> None:
    """Note whose these sessions are, before they are deleted, if memories of others come from them."""
    await tx.execute(_NOTE_DELETED_SOURCES, {"tenant": tx.tenant, "ids": list(session_ids)})


async def count_of(tx: Transaction, *, user_id: str | None = None, agent_id: str | None = None) -> int:
    """Return the number of memories of a user, of all agents, or of an agent."""
    is_owned = memory.c.user_id == user_id if user_id else memory.c.agent_id == agent_id
    statement = select(func.count()).select_from(memory).where(tenant_filter(memory, tx.tenant), is_owned)
    return int(await tx.scalar(statement) or 0)


async def list_embedding_texts(tx: Transaction, ids: Sequence[str]) -> list[str]:
    """Return the texts of which these memories were embedded."""
    where = (tenant_filter(memory, tx.tenant), is_any_of(memory.c.id, ids))
    speaker = memory.c.sources[0]["speaker"].astext.label("speaker")
    rows = await tx.execute(select(memory.c.content, speaker).where(*where))
    return [indexed_text.embedding_text(row.content, speaker=row.speaker) for row in rows]


async def list_archived_sources(tx: Transaction, ids: Sequence[str]) -> list[str]:
    """Return the ids of the archived memories of which one of these says what they said.

    It was derived from them, or said it before they were rewritten, merged or folded into it.
    """
    derived = select(func.unnest(memory.c.derived_from).label("id"))
    derived = derived.where(tenant_filter(memory, tx.tenant), is_any_of(memory.c.id, ids))
    is_source: ColumnElement[bool] = memory.c.id.in_(derived)
    # Under row-level security no index is used for arrays. Whatever went into a memory has reinforced it.
    was_reinforced = (is_any_of(memory.c.id, ids), memory.c.reinforcement_count > 1)
    reinforced = select(memory.c.id).where(tenant_filter(memory, tx.tenant), *was_reinforced)
    if reinforced_ids := (await tx.scalars(reinforced)).all():
        is_source = or_(is_source, memory.c.superseded_by.overlap(list(reinforced_ids)))
    is_archived = (tenant_filter(memory, tx.tenant), memory.c.archived_at.is_not(None))
    return list((await tx.scalars(select(memory.c.id).where(*is_archived, is_source))).all())


async def list_expired(tx: Transaction, limit: int) -> list[str]:
    """Return at most `limit` ids of memories whose expiry is over, archived ones too, sorted."""
    is_expired = (tenant_filter(memory, tx.tenant), memory.c.expires_at <= func.now())
    statement = select(memory.c.id).where(*is_expired).order_by(memory.c.id).limit(limit)
    return list((await tx.scalars(statement)).all())


async def list_archived_before(
    tx: Transaction, age: timedelta, evidence_age: timedelta, limit: int
) -> list[str]:
    """Return at most `limit` ids of memories that were archived longer ago than `age`; of evidence, its."""
    is_evidence = func.coalesce(IS_EVIDENCE, false())
    is_old = or_(
        and_(is_evidence, memory.c.archived_at < func.now() - evidence_age),
        and_(not_(is_evidence), memory.c.archived_at < func.now() - age),
    )
    statement = select(memory.c.id).where(tenant_filter(memory, tx.tenant), is_old).limit(limit)
    return list((await tx.scalars(statement)).all())


async def list_oversized(tx: Transaction, max_chars: int, limit: int) -> dict[str, int]:
    """Return up to `limit` final memories of more than `max_chars` characters, as id → version.

    Those with a key stay as they were written, and those that were replaced keep saying by what. Left out are
    also those that were tried before, and those that wait for a worker.
    """
    is_of_memory = (job.c.tenant == memory.c.tenant, job.c.kind == RecordKind.MEMORY)
    waits = exists().where(
        *is_of_memory, job.c.record_id == memory.c.id, job.c.pipeline == Pipeline.ENRICHMENT
    )
    is_replaced = func.cardinality(memory.c.superseded_by) > 0
    is_oversized = (IS_TO_COMPACT, func.length(memory.c.content) > max_chars, IS_UNEXPIRED, ~is_replaced)
    where = (tenant_filter(memory, tx.tenant), *is_oversized, ~waits)
    rows = await tx.execute(select(memory.c.id, memory.c.version).where(*where).limit(limit))
    return {row.id: row.version for row in rows}


async def get_versions(tx: Transaction, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the current version of each of these memories that exists, by id."""
    has_id = (tenant_filter(memory, tx.tenant), memory.c.id.in_(record_ids))
    rows = await tx.execute(select(memory.c.id, memory.c.version).where(*has_id))
    return {row.id: row.version for row in rows}


async def count(tx: Transaction) -> int:
    """Return the number of a tenant's memories, archived ones included."""
    statement = select(func.count()).select_from(memory).where(tenant_filter(memory, tx.tenant))
    return int(await tx.scalar(statement) or 0)


async def page_versions(tx: Transaction, after: str, limit: int) -> dict[str, int]:
    """Return one page of a tenant's memories, ordered by id, as id → current version."""
    follows = (tenant_filter(memory, tx.tenant), memory.c.id > after)
    statement = select(memory.c.id, memory.c.version).where(*follows).order_by(memory.c.id).limit(limit)
    return {row.id: row.version for row in await tx.execute(statement)}
