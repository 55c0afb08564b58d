"""Every statement on playbooks. Functions take the caller's transaction and never commit.

Only promoted playbooks are searchable, so the index and its workers know no others.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import uuid_utils
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    and_,
    any_,
    case,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from shared.conversation.turns import log_queries
from shared.foundation.scope import Scope
from shared.infra.postgres import (
    exact_scope,
    is_any_of,
    is_in_turn_ranges,
    keyset_after,
    tenant_filter,
    visible_scope,
)
from shared.infra.transaction import Transaction
from shared.memory.playbooks import index_document, satisfaction
from shared.memory.playbooks.playbook import FlowTurns, Playbook, PlaybookDraft, Reason, words_digest
from shared.memory.playbooks.table import READ_COLUMNS
from shared.memory.playbooks.table import playbook as playbook_table
from shared.search.index.points import IndexDocument

_NEWEST_FIRST = (playbook_table.c.created_at.desc(), playbook_table.c.id)


async def insert_playbook(
    tx: Transaction,
    scope: Scope,
    draft: PlaybookDraft,
    reason: Reason,
    *,
    session_id: str | None = None,
    turns: FlowTurns | None = None,
) -> Playbook:
    """Insert a validated playbook and return it."""
    values = {
        "tenant": scope.tenant,
        "id": str(uuid_utils.uuid7()),
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "session_id": session_id,
        **(turns._asdict() if turns is not None else {}),
        "words_digest": words_digest(draft.user_query),
        "reason": reason,
        **draft.model_dump(exclude={"satisfied"}),
    }
    statement = insert(playbook_table).values(values).returning(*READ_COLUMNS)
    return Playbook.from_row((await tx.execute(statement)).mappings().one())


async def get(tx: Transaction, playbook_id: str, *, lock: bool = False) -> Playbook | None:
    """Return a playbook, or None; `lock` locks it until the transaction ends."""
    where = (tenant_filter(playbook_table, tx.tenant), playbook_table.c.id == playbook_id)
    statement = select(*READ_COLUMNS).where(*where)
    rows = await tx.execute(statement.with_for_update() if lock else statement)
    row = rows.mappings().one_or_none()
    return None if row is None else Playbook.from_row(row)


async def list_page(
    tx: Transaction, scope: Scope, filters: Mapping[str, Any], limit: int, after: tuple[datetime, str] | None
) -> list[Playbook]:
    """Return playbooks that a scope sees and that have these column values, newest first.

    `after` is the (created_at, id) of the last playbook of the previous page.
    """
    conditions = [visible_scope(playbook_table, scope)]
    conditions += [playbook_table.c[name] == value for name, value in filters.items()]
    if after is not None:
        created_at, playbook_id = after
        keys = ((playbook_table.c.created_at, created_at, True), (playbook_table.c.id, playbook_id, False))
        conditions.append(keyset_after(*keys))
    return await _select(tx, limit, *conditions)


async def list_promoted(
    tx: Transaction, scope: Scope, limit: int, *, flow: str | None, query: str | None
) -> list[Playbook]:
    """Return promoted playbooks that a scope sees, of a flow or with the words of a query, newest first.

    Those that meet both come first.
    """
    conditions: list[ColumnElement[bool]] = []
    if flow is not None:
        conditions.append(playbook_table.c.flow_dact == flow)
    if query is not None:
        conditions.append(playbook_table.c.words_digest == words_digest(query))
    order = (case((and_(*conditions), 0), else_=1), *_NEWEST_FIRST)
    where = (visible_scope(playbook_table, scope), playbook_table.c.promoted, or_(*conditions))
    statement = select(*READ_COLUMNS).where(*where).order_by(*order).limit(limit)
    return [Playbook.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_by_ids(
    tx: Transaction, ids: Sequence[str], *conditions: ColumnElement[bool]
) -> list[Playbook]:
    """Return the promoted playbooks among `ids` that meet the conditions, in no particular order."""
    where = (_is_searchable(tx.tenant), is_any_of(playbook_table.c.id, ids))
    rows = await tx.execute(select(*READ_COLUMNS).where(*where, *conditions))
    return [Playbook.from_row(row) for row in rows.mappings()]


def visible(scope: Scope) -> ColumnElement[bool]:
    """Return the condition that a scope sees a playbook: the agent's common ones and its user's."""
    return visible_scope(playbook_table, scope)


async def list_decidable(tx: Transaction, limit: int, *conditions: ColumnElement[bool]) -> list[Playbook]:
    """Return playbooks that wait for what the user has said by now, oldest first.

    Those whose user is still silent are left out: they would take the places of the others.
    """
    columns = playbook_table.c
    first_seq = func.coalesce(columns.first_seq, columns.last_seq)
    is_decidable = satisfaction.is_decidable(tx.tenant, columns.session_id, first_seq, columns.last_seq)
    is_waiting = (tenant_filter(playbook_table, tx.tenant), columns.reason == Reason.WAITING)
    return await _select(tx, limit, *is_waiting, is_decidable, *conditions, oldest_first=True)


async def list_waiting_in(tx: Transaction, session_ids: Sequence[str]) -> list[Playbook]:
    """Return the playbooks that wait for the user of one of these sessions."""
    where = (tenant_filter(playbook_table, tx.tenant), is_any_of(playbook_table.c.session_id, session_ids))
    return await _select(tx, None, *where, playbook_table.c.reason == Reason.WAITING)


async def _select(
    tx: Transaction, limit: int | None, *conditions: ColumnElement[bool], oldest_first: bool = False
) -> list[Playbook]:
    order = (playbook_table.c.created_at, playbook_table.c.id) if oldest_first else _NEWEST_FIRST
    statement = select(*READ_COLUMNS).where(*conditions).order_by(*order).limit(limit)
    return [Playbook.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def decide(tx: Transaction, playbook_id: str, reason: Reason) -> Playbook | None:
    """End the waiting of a playbook and return it; None if another request has ended it or deleted it."""
    is_waiting = playbook_table.c.reason == Reason.WAITING
    where = (tenant_filter(playbook_table, tx.tenant), playbook_table.c.id == playbook_id, is_waiting)
    statement = update(playbook_table).where(*where).values(reason=reason).returning(*READ_COLUMNS)
    row = (await tx.execute(statement)).mappings().one_or_none()
    return None if row is None else Playbook.from_row(row)


async def move_turns(tx: Transaction, playbook: Playbook, turns: FlowTurns) -> None:
    """Note that the flow of a waiting playbook had other turns than was known when it was recorded."""
    is_one = (tenant_filter(playbook_table, playbook.tenant), playbook_table.c.id == playbook.id)
    is_waiting = playbook_table.c.reason == Reason.WAITING
    await tx.execute(update(playbook_table).where(*is_one, is_waiting).values(turns._asdict()))


async def keep_without_sessions(tx: Transaction, session_ids: Sequence[str]) -> None:
    """Let playbooks stay although these sessions, which have expired, are about to be deleted."""
    if session_ids:
        where = (
            tenant_filter(playbook_table, tx.tenant),
            is_any_of(playbook_table.c.session_id, session_ids),
        )
        is_waiting = playbook_table.c.reason == Reason.WAITING
        reason = case((is_waiting, Reason.SESSION_ENDED.value), else_=playbook_table.c.reason)
        values = {"reason": reason, "session_id": None, "first_seq": None, "last_seq": None}
        await tx.execute(update(playbook_table).where(*where).values(values))


async def lock_of(tx: Transaction, *, session_ids: Sequence[str] = (), **owner: str) -> list[str]:
    """Lock the playbooks of these sessions, and those of an owner, by id; return their ids.

    An owner is `user_id`, of all agents, or `agent_id`, of all users.
    """
    conditions = [playbook_table.c[name] == value for name, value in owner.items()]
    conditions.append(is_any_of(playbook_table.c.session_id, session_ids))
    where = (tenant_filter(playbook_table, tx.tenant), or_(*conditions))
    statement = select(playbook_table.c.id).where(*where).order_by(playbook_table.c.id).with_for_update()
    return list((await tx.scalars(statement)).all())


async def lock_from_turns(tx: Transaction, ranges: Sequence[tuple[str, int, int]]) -> list[str]:
    """Lock the playbooks of flows that had one of these turns, by id; return their ids.

    A range of turns is (session id, first seq, last seq).
    """
    columns = playbook_table.c
    first_seq = func.coalesce(columns.first_seq, columns.last_seq)
    has_turn = is_in_turn_ranges(columns.session_id, first_seq, columns.last_seq, ranges)
    statement = select(columns.id).where(tenant_filter(playbook_table, tx.tenant), has_turn)
    return list(await tx.scalars(statement.order_by(columns.id).with_for_update()))


async def reopen_decided_by(tx: Transaction, session_id: str, seqs: Sequence[int]) -> list[str]:
    """Let those playbooks wait again about which one of these turns has decided; return their ids."""
    columns = playbook_table.c
    next_seq = log_queries.next_of_user_after(tx.tenant, columns.session_id, columns.last_seq)
    where = (
        *(tenant_filter(playbook_table, tx.tenant), columns.session_id == session_id),
        *(columns.reason.in_([Reason.CONTINUED, Reason.CORRECTED]), columns.last_seq.is_not(None)),
        next_seq == any_(literal(list(seqs), ARRAY(Integer))),
    )
    locked = select(columns.id).where(*where).order_by(columns.id).with_for_update()
    ids = list(await tx.scalars(locked))
    is_one = (tenant_filter(playbook_table, tx.tenant), is_any_of(columns.id, ids))
    await tx.execute(update(playbook_table).where(*is_one).values(reason=Reason.WAITING))
    return ids


async def has_query(tx: Transaction, scope: Scope, user_query: str, except_id: str) -> bool:
    """Return whether exactly this scope has another playbook with the same words of a query."""
    has_words = playbook_table.c.words_digest == words_digest(user_query)
    where = (exact_scope(playbook_table, scope), has_words, playbook_table.c.id != except_id)
    return bool(await tx.scalar(select(exists(select(playbook_table.c.id).where(*where)))))


async def list_embedding_texts(tx: Transaction, ids: Sequence[str]) -> list[str]:
    """Return what of these playbooks was embedded."""
    where = (_is_searchable(tx.tenant), is_any_of(playbook_table.c.id, ids))
    rows = await tx.scalars(select(playbook_table.c.user_query).where(*where))
    return [index_document.embedding_text(user_query) for user_query in rows]


async def load_documents(tx: Transaction, record_ids: Sequence[str]) -> list[IndexDocument]:
    """Return the index documents of a tenant's promoted playbooks, by record id."""
    playbooks = await list_by_ids(tx, record_ids)
    return [index_document.document(playbook) for playbook in playbooks]


async def versions(tx: Transaction, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the index version of each of these playbooks that is promoted, by id."""
    where = (_is_searchable(tx.tenant), is_any_of(playbook_table.c.id, record_ids))
    rows = await tx.scalars(select(playbook_table.c.id).where(*where))
    return dict.fromkeys(rows, index_document.VERSION)


async def count(tx: Transaction) -> int:
    """Return the number of a tenant's promoted playbooks."""
    statement = select(func.count()).select_from(playbook_table).where(_is_searchable(tx.tenant))
    return int(await tx.scalar(statement) or 0)


async def page_versions(tx: Transaction, after: str, limit: int) -> dict[str, int]:
    """Return one page of a tenant's promoted playbooks, ordered by id, as id → index version."""
    where = (_is_searchable(tx.tenant), playbook_table.c.id > after)
    statement = select(playbook_table.c.id).where(*where).order_by(playbook_table.c.id).limit(limit)
    return dict.fromkeys(await tx.scalars(statement), index_document.VERSION)


def _is_searchable(tenant: str) -> ColumnElement[bool]:
    return and_(tenant_filter(playbook_table, tenant), playbook_table.c.promoted)
