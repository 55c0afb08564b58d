"""Every statement on turns and recalled memories.

Functions take the caller's transaction and never commit.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Text,
    bindparam,
    func,
    literal,
    select,
    text,
    tuple_,
)

from shared.conversation.feedback.report import MAX_PREVIOUS
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.conversation.turns.table import READ_COLUMNS, turn
from shared.conversation.turns.turn import Turn, TurnDraft, record_id_of, searchable_text_of, turn_key_of
from shared.foundation.origin import Origin
from shared.foundation.roles import Role
from shared.foundation.scope import Scope
from shared.infra.key_look_up import look_up
from shared.infra.postgres import (
    exact_scope,
    is_any_of,
    seconds,
    tenant_filter,
    visible_scope,
)
from shared.infra.transaction import Transaction
from shared.search.text import indexed_text, tsvector

_INSERT = text(
    """
    INSERT INTO turn (tenant, session_id, seq, agent_id, user_id, role, speaker, content, created_at,
                      metadata, item, recalled_lines, recalled_ids, search_terms,
                      origin_channel, origin_trust, origin_key)
    SELECT :tenant, :session_id, r.seq, :agent_id, :user_id, r.role, r.speaker, r.content,
           coalesce(r.created_at, now()), r.metadata, r.item, r.recalled_lines, r.recalled_ids,
           array_to_tsvector(r.search_terms), r.origin_channel, r.origin_trust, r.origin_key
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
        seq int, role text, speaker text, content text, created_at timestamptz, metadata jsonb,
        item text, recalled_lines jsonb, recalled_ids text[], search_terms text[],
        origin_channel text, origin_trust text, origin_key text)
    ORDER BY r.seq
    RETURNING *
    """
)


_DRAFT_COLUMNS = {"role", "speaker", "content", "created_at", "metadata", "item"}


async def insert_rows(
    tx: Transaction, session: Session, first_seq: int, drafts: Sequence[TurnDraft], origins: Sequence[Origin]
) -> list[Turn]:
    """Insert turns of a locked session, numbered from `first_seq`, with their origins; return them."""
    pairs = zip(drafts, origins, strict=True)
    rows = [_row(seq, draft) | origin.columns() for seq, (draft, origin) in enumerate(pairs, start=first_seq)]
    values = {
        "tenant": session.tenant,
        "session_id": session.id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "rows": orjson.dumps(rows).decode(),
    }
    turns = [Turn.from_row(row) for row in await tx.fetch(_INSERT, values)]
    return sorted(turns, key=lambda inserted: inserted.seq)


def _row(seq: int, draft: TurnDraft) -> dict[str, Any]:
    searchable_text = searchable_text_of(draft.speaker, draft.content)
    return draft.model_dump(mode="json", include=_DRAFT_COLUMNS) | {
        "seq": seq,
        "recalled_lines": [line.to_json() for line in draft.recalled],
        "recalled_ids": list(dict.fromkeys(line.id for line in draft.recalled)),
        "search_terms": tsvector.terms_of(searchable_text),
    }


async def list_last(tx: Transaction, session_id: str, count: int) -> list[Turn]:
    """Return a session's last turns, oldest first."""
    where = (tenant_filter(turn, tx.tenant), turn.c.session_id == session_id)
    statement = select(*READ_COLUMNS).where(*where).order_by(turn.c.seq.desc()).limit(count)
    return [Turn.from_row(row) for row in (await tx.execute(statement)).mappings()][::-1]


_LIST_SEQS = text(
    "SELECT seq FROM turn WHERE tenant = :tenant AND session_id = :session_id AND seq >= :start ORDER BY seq"
)


async def list_seqs(tx: Transaction, session: Session, start: int) -> list[int]:
    """Return the sequence numbers of a session's turns from `start` on, in order."""
    values = {"tenant": session.tenant, "session_id": session.id, "start": start}
    return [row["seq"] for row in await tx.fetch(_LIST_SEQS, values)]


async def assistant_text_before(tx: Transaction, session: Session, seq: int) -> tuple[int, str] | None:
    """Return the number of the turn before this one and the end of its text, if it is the assistant's."""
    where = (tenant_filter(turn, session.tenant), turn.c.session_id == session.id, turn.c.seq < seq)
    statement = select(turn.c.seq, turn.c.role, func.right(turn.c.content, MAX_PREVIOUS).label("content"))
    newest = statement.where(*where).order_by(turn.c.seq.desc()).limit(1)
    row = (await tx.execute(newest)).one_or_none()
    return (row.seq, str(row.content)) if row is not None and row.role == Role.ASSISTANT else None


_BY_KEY = look_up(turn, session_ids=turn.c.session_id, seqs=turn.c.seq)


async def list_by_keys(
    tx: Transaction,
    turn_keys: Collection[tuple[str, int]],
    conditions_on: Callable[[FromClause], Sequence[ColumnElement[bool]]],
) -> list[Turn]:
    """Return the turns with these (session_id, seq) keys that meet the conditions, in no particular order.

    `conditions_on` returns the conditions on rows with the columns of `turn`.
    """
    keys = {"session_ids": [key[0] for key in turn_keys], "seqs": [key[1] for key in turn_keys]}
    rows = await tx.execute(_select_by_keys(conditions_on), {"tenant": tx.tenant, **keys})
    return [Turn.from_row(row) for row in rows.mappings()]


def _select_by_keys(conditions_on: Callable[[FromClause], Sequence[ColumnElement[bool]]]) -> Select[Any]:
    columns = [_BY_KEY.c[column.name] for column in READ_COLUMNS]
    return select(*columns).where(*conditions_on(_BY_KEY))


async def list_matching(
    tx: Transaction, terms: Sequence[str], limit: int, *conditions: ColumnElement[bool]
) -> list[Turn]:
    """Return turns that contain any of the terms and meet the conditions, best match first."""
    if not terms:
        return []
    matches, rank = tsvector.matches_any(turn.c.search_terms, terms)
    statement = select(*READ_COLUMNS).where(*conditions, matches)
    best_first = statement.order_by(rank.desc(), turn.c.created_at.desc()).limit(limit)
    return await select_turns(tx, best_first)


async def list_created_at(
    tx: Transaction, session: Session, times: Collection[datetime | None]
) -> list[Turn]:
    """Return the turns of a session that were created at any of these times, in no particular order."""
    in_session = (tenant_filter(turn, session.tenant), turn.c.session_id == session.id)
    return await select_turns(tx, select(*READ_COLUMNS).where(*in_session, turn.c.created_at.in_(times)))


async def has_turn_within(tx: Transaction, scope: Scope, age_seconds: float) -> bool:
    """Return whether exactly this scope received a turn within the last `age_seconds`."""
    is_recent = turn.c.received_at > func.now() - seconds(age_seconds)
    statement = select(turn.c.seq).where(exact_scope(turn, scope), is_recent).limit(1)
    return await tx.scalar(statement) is not None


async def select_turns(tx: Transaction, statement: Select[Any]) -> list[Turn]:
    """Run a select on `turn` that another file of statements built."""
    return [Turn.from_row(row) for row in (await tx.execute(statement)).mappings()]


def visible(scope: Scope, turns: FromClause = turn) -> ColumnElement[bool]:
    """Return the condition that a scope sees a turn: the agent's common turns and its user's.

    Turns of expired sessions are not visible.
    """
    return visible_scope(turns, scope) & session_queries.session_is_live(turns)


_SAVE_RECALLED = text(
    """
    INSERT INTO recalled_memory (tenant, session_id, memory_id, content_version, seq)
    SELECT :tenant, :session_id, r.memory_id, r.content_version, :seq
    FROM unnest(:ids, :versions) AS r (memory_id, content_version)
    ON CONFLICT (tenant, session_id, memory_id) DO UPDATE
        SET content_version = excluded.content_version, seq = excluded.seq
    """
).bindparams(bindparam("ids", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(Integer)))


async def save_recalled(tx: Transaction, session: Session, seq: int, memories: Mapping[str, int]) -> None:
    """Record that memories, given as id → content version, were injected with a turn."""
    if memories:
        values = {"tenant": session.tenant, "session_id": session.id, "seq": seq}
        columns = {"ids": list(memories), "versions": list(memories.values())}
        await tx.fetch(_SAVE_RECALLED, values | columns)


async def list_sessions_showing(tx: Transaction, record_ids: Sequence[str]) -> list[str]:
    """Return the ids of the sessions with a turn that shows a line of one of these memories or skills."""
    shows = turn.c.recalled_ids.overlap(literal(list(record_ids), ARRAY(Text)))
    statement = select(turn.c.session_id).where(tenant_filter(turn, tx.tenant), shows).distinct()
    return list((await tx.scalars(statement)).all())


async def list_record_ids(tx: Transaction, session_ids: Sequence[str]) -> list[str]:
    """Return the record id of every turn of these sessions."""
    where = (tenant_filter(turn, tx.tenant), is_any_of(turn.c.session_id, session_ids))
    rows = await tx.execute(select(turn.c.session_id, turn.c.seq).where(*where))
    return [record_id_of(row.session_id, row.seq) for row in rows]


async def list_indexed(tx: Transaction, session_ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Return (version, embedding text) of every turn of these sessions, by record id."""
    where = (tenant_filter(turn, tx.tenant), is_any_of(turn.c.session_id, session_ids))
    columns = (turn.c.session_id, turn.c.seq, turn.c.version, turn.c.content, turn.c.speaker)
    rows = await tx.execute(select(*columns).where(*where))
    return {
        record_id_of(row.session_id, row.seq): (
            row.version,
            indexed_text.embedding_text(row.content, speaker=row.speaker),
        )
        for row in rows
    }


async def load_rows(tx: Transaction, record_ids: Sequence[str]) -> list[Any]:
    """Return the complete rows of the turns with these record ids."""
    where = (tenant_filter(turn, tx.tenant), _has_record_id(record_ids))
    return list((await tx.execute(select(turn).where(*where))).mappings())


def _has_record_id(record_ids: Sequence[str]) -> ColumnElement[bool]:
    return tuple_(turn.c.session_id, turn.c.seq).in_([turn_key_of(record_id) for record_id in record_ids])


async def versions(
    tx: Transaction, record_ids: Sequence[str], *conditions: ColumnElement[bool]
) -> dict[str, int]:
    """Return the index version of each of these turns that exists and meets the conditions, by record id."""
    where = (tenant_filter(turn, tx.tenant), _has_record_id(record_ids), *conditions)
    rows = await tx.execute(select(turn.c.session_id, turn.c.seq, turn.c.version).where(*where))
    return {record_id_of(row.session_id, row.seq): row.version for row in rows}


async def count_of(tx: Transaction, *, user_id: str | None = None, agent_id: str | None = None) -> int:
    """Return the number of turns of a user, of all agents, or of an agent."""
    is_owned = turn.c.user_id == user_id if user_id else turn.c.agent_id == agent_id
    statement = select(func.count()).select_from(turn).where(tenant_filter(turn, tx.tenant), is_owned)
    return int(await tx.scalar(statement) or 0)


async def count(tx: Transaction) -> int:
    """Return the number of a tenant's turns."""
    statement = select(func.count()).select_from(turn).where(tenant_filter(turn, tx.tenant))
    return int(await tx.scalar(statement) or 0)


async def page_versions(tx: Transaction, after: str, limit: int) -> dict[str, int]:
    """Return one page of a tenant's turns, ordered by (session_id, seq), as record id → index version.

    `after` is the last record id of the previous page, or empty for the first page.
    """
    turn_key = tuple_(turn.c.session_id, turn.c.seq)
    last_key = turn_key_of(after) if after else ("", 0)
    follows = (tenant_filter(turn, tx.tenant), turn_key > last_key)
    statement = select(turn.c.session_id, turn.c.seq, turn.c.version).where(*follows)
    ordered = statement.order_by(turn.c.session_id, turn.c.seq).limit(limit)
    rows = await tx.execute(ordered)
    return {record_id_of(row.session_id, row.seq): row.version for row in rows}


async def list_expired(tx: Transaction, age: timedelta, limit: int) -> list[str]:
    """Return at most `limit` record ids of turns received longer ago than `age`."""
    is_old = (tenant_filter(turn, tx.tenant), turn.c.received_at < func.now() - age)
    rows = await tx.execute(select(turn.c.session_id, turn.c.seq).where(*is_old).limit(limit))
    return [record_id_of(row.session_id, row.seq) for row in rows]
