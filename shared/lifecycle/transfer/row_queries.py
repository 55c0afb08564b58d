"""Statements on the rows that an export reads and an import writes, built from what `line_kinds` declares.

Functions take the caller's transaction and never commit.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    RowMapping,
    Select,
    Text,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    true,
    tuple_,
    update,
)

from shared.conversation.sessions.table import session
from shared.conversation.state.types import OwnerKind
from shared.foundation.names import fold
from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.lifecycle.transfer.row_checks import Fields
from shared.lifecycle.transfer.row_kind import LineKind, Owner, RowKind, carried_columns
from shared.search.text import tsvector

Key = tuple[Any, ...]


async def list_page(
    tx: Transaction, kind: RowKind, scope: Scope, after: Key | None, limit: int
) -> list[RowMapping]:
    """Return the rows of a kind that exactly this scope has, which follow the position `after`."""
    return await _page(tx, kind, _of_scope(kind, scope), after, limit)


async def list_session_page(
    tx: Transaction, kind: RowKind, session_id: str, after: Key | None, limit: int
) -> list[RowMapping]:
    """Return the rows of a kind that one session has, which follow the position `after`."""
    in_session = and_(tenant_filter(kind.table, tx.tenant), kind.table.c.session_id == session_id)
    return await _page(tx, kind, in_session, after, limit)


def position_of(kind: RowKind, row: RowMapping) -> Key:
    """Return the position of a row in the order of an export."""
    return tuple(row[name] for name in kind.order or kind.key)


async def _page(
    tx: Transaction, kind: RowKind, condition: ColumnElement[bool], after: Key | None, limit: int
) -> list[RowMapping]:
    order = [kind.table.c[name] for name in kind.order or kind.key]
    columns = {column.name: column for column in (*carried_columns(kind).values(), *order)}
    statement: Select[Any] = select(*columns.values()).where(condition).order_by(*order).limit(limit)
    if after is not None:
        statement = statement.where(tuple_(*order) > after)
    return list((await tx.execute(statement)).mappings())


def _of_scope(kind: RowKind, scope: Scope) -> ColumnElement[bool]:
    table, in_tenant = kind.table, tenant_filter(kind.table, scope.tenant)
    sessions = select(session.c.id).where(_is_live_session(scope))
    if kind.owner is Owner.SESSION:
        return in_tenant & table.c.session_id.in_(sessions)
    if kind.owner is Owner.STATE_STORE:
        of_session = and_(table.c.owner_kind == OwnerKind.SESSION, table.c.owner_id.in_(sessions))
        of_agent = and_(table.c.owner_kind == OwnerKind.AGENT, table.c.owner_id == scope.agent_id)
        return in_tenant & (of_session if scope.user_id else or_(of_session, of_agent))
    return _is_owned(kind, scope) & (_is_live_session(scope) if table is session else true())


def _is_live_session(scope: Scope) -> ColumnElement[bool]:
    is_live = or_(session.c.expires_at.is_(None), session.c.expires_at > func.now())
    return exact_scope(session, scope) & is_live


def owner_columns(kind: RowKind, scope: Scope) -> dict[str, Any]:
    """Return the columns of a row that say to which scope or agent it belongs."""
    if kind.name is LineKind.AGENT:
        return {"tenant": scope.tenant, "id": scope.agent_id}
    owner = {"tenant": scope.tenant, "agent_id": scope.agent_id, "user_id": scope.user_id}
    return {name: value for name, value in owner.items() if name in kind.table.c}


def _is_owned(kind: RowKind, scope: Scope) -> ColumnElement[bool]:
    columns = owner_columns(kind, scope)
    return and_(*(kind.table.c[name].is_not_distinct_from(value) for name, value in columns.items()))


async def lock_rows(
    tx: Transaction, kind: RowKind, scope: Scope, keys: Collection[Key]
) -> dict[Key, RowMapping]:
    """Lock the rows with these keys, and return them by their keys.

    A row with an id of its own is returned whoever owns it; every other one belongs to the scope.
    """
    columns = [kind.table.c[name] for name in kind.key]
    where = tenant_filter(kind.table, scope.tenant) if kind.is_keyed_by_id else _is_owned(kind, scope)
    statement = select(kind.table).where(where, tuple_(*columns).in_(list(keys)))
    rows = await tx.execute(statement.order_by(*kind.table.primary_key).with_for_update())
    return {tuple(row[name] for name in kind.key): row for row in rows.mappings()}


async def insert_rows(tx: Transaction, kind: RowKind, rows: Iterable[Fields]) -> None:
    """Insert rows; columns that a row does not name get their defaults.

    Raises IntegrityError when the key of one is taken.
    """
    statement = insert(kind.table)
    if kind.search_text is not None:
        terms = bindparam("terms", type_=ARRAY(Text))
        statement = statement.values(search_terms=func.array_to_tsvector(terms))
        rows = [row | {"terms": tsvector.terms_of(kind.search_text(row))} for row in rows]
    # A statement for many rows needs the same columns in each.
    for _, group in groupby(sorted(rows, key=sorted), key=sorted):
        await tx.execute(statement, list(group))


async def update_row(tx: Transaction, kind: RowKind, row: RowMapping, columns: Mapping[str, Any]) -> None:
    """Overwrite columns of a locked row."""
    is_row = (column == row[column.name] for column in kind.table.primary_key)
    await tx.execute(update(kind.table).where(*is_row).values(dict(columns)))


async def list_session_ids(
    tx: Transaction, scope: Scope, line_ids: Sequence[str]
) -> tuple[dict[str, str], set[str]]:
    """Return the scope's own sessions among these ids, and those that other scopes use.

    Ids are compared without regard to case: the first part maps an id of a line to that of the session.
    """
    by_folded_id = {fold(line_id): line_id for line_id in line_ids}
    statement = select(session.c.id, session.c.folded_id, exact_scope(session, scope).label("is_own"))
    where = (tenant_filter(session, scope.tenant), is_any_of(session.c.folded_id, by_folded_id))
    rows = list(await tx.execute(statement.where(*where)))
    own = {by_folded_id[row.folded_id]: row.id for row in rows if row.is_own}
    return own, {by_folded_id[row.folded_id] for row in rows if not row.is_own}


async def lock_sessions(tx: Transaction, scope: Scope, session_ids: Collection[str]) -> dict[str, RowMapping]:
    """Lock the scope's live sessions among these, in the order of their ids."""
    where = (_is_live_session(scope), is_any_of(session.c.id, session_ids))
    statement = select(session).where(*where).order_by(session.c.id).with_for_update()
    return {row["id"]: row for row in (await tx.execute(statement)).mappings()}
