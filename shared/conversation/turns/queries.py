"""Every statement on turns and recall marks."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import orjson
from sqlalchemy import ARRAY, ColumnElement, Select, Text, bindparam, delete, func, or_, select, text, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.conversation.turns.table import READ_COLUMNS, recalled_memory, turn
from shared.conversation.turns.turn import Turn, TurnDraft, record_id_of, turn_key_of
from shared.foundation.scope import Scope
from shared.infra.postgres import is_any_turn_of, tenant_filter
from shared.search.text import indexed_text, tsvector

VERSION = 1
"""A turn never changes, so its point has one version."""

_INSERT = text(
    """
    INSERT INTO turn (tenant, session_id, seq, agent_id, user_id, role, speaker, content, created_at,
                      metadata, recalled_lines, recalled_ids, search_terms)
    SELECT :tenant, :session_id, r.seq, :agent_id, :user_id, r.role, r.speaker, r.content,
           coalesce(r.created_at, now()), r.metadata, r.recalled_lines, r.recalled_ids,
           array_to_tsvector(r.search_terms)
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
        seq int, role text, speaker text, content text, created_at timestamptz, metadata jsonb,
        recalled_lines jsonb, recalled_ids text[], search_terms text[])
    ORDER BY r.seq
    RETURNING *
    """
)


async def insert_rows(
    connection: AsyncConnection, session: Session, first_seq: int, drafts: Sequence[TurnDraft]
) -> list[Turn]:
    """Append turns to a locked session, numbered from `first_seq`."""
    rows = [_row(seq, draft) for seq, draft in enumerate(drafts, start=first_seq)]
    values = {
        "tenant": session.tenant,
        "session_id": session.id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "rows": orjson.dumps(rows).decode(),
    }
    added = [Turn.from_row(row) for row in (await connection.execute(_INSERT, values)).mappings()]
    return sorted(added, key=lambda one: one.seq)


def _row(seq: int, draft: TurnDraft) -> dict[str, Any]:
    said = f"{draft.speaker}\n{draft.content}" if draft.speaker else draft.content
    return draft.model_dump(mode="json", include={"role", "speaker", "content", "created_at", "metadata"}) | {
        "seq": seq,
        "recalled_lines": [line.model_dump() for line in draft.recalled],
        "recalled_ids": [line.id for line in draft.recalled],
        "search_terms": tsvector.terms_of(said),
    }


async def list_last(connection: AsyncConnection, tenant: str, session_id: str, count: int) -> list[Turn]:
    """Return a session's last turns, oldest first."""
    mine = (tenant_filter(turn, tenant), turn.c.session_id == session_id)
    statement = select(*READ_COLUMNS).where(*mine).order_by(turn.c.seq.desc()).limit(count)
    return [Turn.from_row(row) for row in (await connection.execute(statement)).mappings()][::-1]


async def list_by_keys(
    connection: AsyncConnection,
    scope: Scope,
    places: Iterable[tuple[str, int]],
    conditions: Sequence[ColumnElement[bool]] = (),
) -> list[Turn]:
    """Return the turns at these (session, seq) places that the scope sees, in no order."""
    here = is_any_turn_of(turn.c.session_id, turn.c.seq, places)
    return await select_turns(connection, select(*READ_COLUMNS).where(visible(scope), here, *conditions))


async def select_turns(connection: AsyncConnection, statement: Select[Any]) -> list[Turn]:
    """Run a select on `turn` that another file of this capability built."""
    return [Turn.from_row(row) for row in (await connection.execute(statement)).mappings()]


def visible(scope: Scope) -> ColumnElement[bool]:
    """Return the condition of what a scope sees: the agent's common turns, and its user's."""
    common = turn.c.user_id.is_(None)
    whose = common if scope.user_id is None else or_(common, turn.c.user_id == scope.user_id)
    mine = tenant_filter(turn, scope.tenant) & (turn.c.agent_id == scope.agent_id) & whose
    return mine & session_queries.session_is_live(turn)


async def list_recalled(
    connection: AsyncConnection, tenant: str, session_id: str, after: int
) -> dict[str, tuple[int, int]]:
    """Return what a session has been shown since turn `after`: id → (content version, seq of that turn)."""
    since = (recalled_memory.c.session_id == session_id, recalled_memory.c.seq > after)
    mine = (tenant_filter(recalled_memory, tenant), *since)
    columns = (recalled_memory.c.memory_id, recalled_memory.c.content_version, recalled_memory.c.seq)
    rows = await connection.execute(select(*columns).where(*mine))
    return {row.memory_id: (row.content_version, row.seq) for row in rows}


async def save_recalled(
    connection: AsyncConnection, session: Session, seq: int, shown: Mapping[str, int]
) -> None:
    """Note that entries (id → content version) were shown with a turn."""
    rows = [
        {
            "tenant": session.tenant,
            "session_id": session.id,
            "memory_id": entry_id,
            "content_version": version,
            "seq": seq,
        }
        for entry_id, version in shown.items()
    ]
    if not rows:
        return
    statement = insert(recalled_memory).values(rows)
    newer = {"content_version": statement.excluded.content_version, "seq": statement.excluded.seq}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=list(recalled_memory.primary_key), set_=newer)
    )


_ERASE_RECALLED = text(
    """
    UPDATE turn SET
        recalled_lines = coalesce((SELECT jsonb_agg(line) FROM jsonb_array_elements(recalled_lines) line
                             WHERE line ->> 'id' <> ALL (:ids)), '[]'),
        recalled_ids = ARRAY(SELECT x FROM unnest(recalled_ids) x WHERE x <> ALL (:ids))
    WHERE tenant = :tenant AND recalled_ids && :ids
    RETURNING session_id
    """
).bindparams(bindparam("ids", type_=ARRAY(Text)))


async def delete_recalled_lines(
    connection: AsyncConnection, tenant: str, entry_ids: Sequence[str]
) -> list[str]:
    """Take forgotten entries' lines out of stored turns; return the sessions whose windows are stale."""
    values = {"tenant": tenant, "ids": list(entry_ids)}
    stale = set((await connection.scalars(_ERASE_RECALLED, values)).all())
    forgotten = (tenant_filter(recalled_memory, tenant), recalled_memory.c.memory_id.in_(entry_ids))
    await connection.execute(delete(recalled_memory).where(*forgotten))
    return sorted(stale)


async def embedding_texts(
    connection: AsyncConnection, tenant: str, session_ids: Sequence[str]
) -> dict[str, str]:
    """Return what was embedded of every turn of these sessions, by index name."""
    mine = (tenant_filter(turn, tenant), turn.c.session_id.in_(session_ids))
    columns = (turn.c.session_id, turn.c.seq, turn.c.content, turn.c.speaker)
    rows = await connection.execute(select(*columns).where(*mine))
    return {
        record_id_of(row.session_id, row.seq): indexed_text.embedding_text(row.content, speaker=row.speaker)
        for row in rows
    }


async def load_rows(connection: AsyncConnection, tenant: str, record_ids: Sequence[str]) -> list[Any]:
    """Return turns with their scope columns, by index name."""
    here = tuple_(turn.c.session_id, turn.c.seq).in_([turn_key_of(record_id) for record_id in record_ids])
    return list((await connection.execute(select(turn).where(tenant_filter(turn, tenant), here))).mappings())


async def versions(connection: AsyncConnection, tenant: str, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the version of each of these turns that exists, by index name."""
    here = tuple_(turn.c.session_id, turn.c.seq).in_([turn_key_of(record_id) for record_id in record_ids])
    rows = await connection.execute(
        select(turn.c.session_id, turn.c.seq).where(tenant_filter(turn, tenant), here)
    )
    return {record_id_of(row.session_id, row.seq): VERSION for row in rows}


async def page_keys(
    connection: AsyncConnection, tenant: str, after: tuple[str, int], limit: int
) -> list[tuple[str, int]]:
    """Page through a tenant's turns by (session, seq)."""
    place = tuple_(turn.c.session_id, turn.c.seq)
    statement = select(turn.c.session_id, turn.c.seq).where(tenant_filter(turn, tenant), place > after)
    ordered = statement.order_by(turn.c.session_id, turn.c.seq).limit(limit)
    return [(row.session_id, row.seq) for row in await connection.execute(ordered)]


async def expired(connection: AsyncConnection, tenant: str, age: timedelta, limit: int) -> list[str]:
    """Delete turns received longer ago than `age`; return their index names."""
    old = (
        select(turn.c.session_id, turn.c.seq)
        .where(tenant_filter(turn, tenant), turn.c.received_at < func.now() - age)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    places = [(row.session_id, row.seq) for row in await connection.execute(old)]
    if places:
        here = tuple_(turn.c.session_id, turn.c.seq).in_(places)
        await connection.execute(delete(turn).where(tenant_filter(turn, tenant), here))
    return [record_id_of(*place) for place in places]
