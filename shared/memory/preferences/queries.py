"""Every statement on preferences. Functions take the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import uuid_utils
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    FromClause,
    Text,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from shared.foundation.content import Subject
from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope, is_any_of, keyset_after, tenant_filter, visible_scope
from shared.infra.transaction import Transaction
from shared.memory.longterm import standing
from shared.memory.preferences.preference import Preference
from shared.memory.preferences.table import READ_COLUMNS
from shared.memory.preferences.table import preference as preference_table
from shared.search.text import tsvector

_NEXT_VERSION = text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
_OWNER_COLUMNS = {Subject.USER: "user_id", Subject.AGENT: "agent_id", Subject.MEMORY: "memory_id"}
_IS_DESCRIBED = preference_table.c.description.is_not(None)


def in_force(scope: Scope) -> ColumnElement[bool]:
    """Return the condition that a scope goes by a preference.

    It needs no permission, or has it, and is not suspended. One of the agent's gives way to the user's own
    under the same key.
    """
    visible = visible_scope(preference_table, scope)
    if scope.user_id is None:
        return and_(visible, _applies(preference_table))
    own = preference_table.alias("own")
    own_under_key = select(own.c.id).where(
        *(own.c.tenant == scope.tenant, own.c.agent_id == scope.agent_id, own.c.user_id == scope.user_id),
        *(own.c.key == preference_table.c.key, _applies(own)),
    )
    is_own = preference_table.c.user_id == scope.user_id
    return and_(visible, _applies(preference_table), or_(is_own, ~exists(own_under_key)))


def _applies(table: FromClause) -> ColumnElement[bool]:
    is_permitted = or_(
        table.c.requires_user_permission.is_(False), table.c.permission_granted_at.is_not(None)
    )
    return and_(is_permitted, ~_is_suspended(table))


def _is_suspended(table: FromClause) -> ColumnElement[bool]:
    """Return the condition that the memory of a learnt preference does not stand."""
    return and_(table.c.memory_id.is_not(None), ~standing.stands(table.c.tenant, table.c.memory_id))


def of_flow(flow: str | None) -> ColumnElement[bool]:
    """Return the condition that a described preference is for this flow or for any; without one, for all."""
    if flow is None:
        return _IS_DESCRIBED
    column = preference_table.c.flow
    return _IS_DESCRIBED & or_(column.is_(None), column == flow)


_READ_COLUMNS = [*READ_COLUMNS, _is_suspended(preference_table).label("is_suspended")]


def _is_named(scope: Scope, key: str) -> ColumnElement[bool]:
    return and_(exact_scope(preference_table, scope), preference_table.c.key == key)


async def lock(tx: Transaction, scope: Scope, key: str) -> Preference | None:
    """Lock and return the preference that exactly this scope has under a key, or None."""
    statement = select(*_READ_COLUMNS).where(_is_named(scope, key)).with_for_update()
    rows = (await tx.execute(statement)).mappings()
    return next((Preference.from_row(row) for row in rows), None)


async def lock_learnt(tx: Transaction, memory_id: str) -> list[Preference]:
    """Lock and return the preferences that were learnt with a memory."""
    where = (tenant_filter(preference_table, tx.tenant), preference_table.c.memory_id == memory_id)
    statement = select(*_READ_COLUMNS).where(*where).order_by(preference_table.c.id).with_for_update()
    return [Preference.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def find_visible(tx: Transaction, scope: Scope, key: str) -> Preference | None:
    """Return what a scope sees under a key: the user's own before the agent's. Or None."""
    where = (visible_scope(preference_table, scope), preference_table.c.key == key)
    own_first = select(*_READ_COLUMNS).where(*where).order_by(preference_table.c.user_id.nulls_last())
    row = (await tx.execute(own_first.limit(1))).mappings().one_or_none()
    return None if row is None else Preference.from_row(row)


async def list_page(
    tx: Transaction, scope: Scope, limit: int, after: tuple[datetime, str] | None
) -> list[Preference]:
    """Return what a scope sees, oldest first, from the position (created_at, id) `after` on."""
    conditions = [visible_scope(preference_table, scope)]
    if after is not None:
        created_at, preference_id = after
        columns = preference_table.c
        keys = ((columns.created_at, created_at, False), (columns.id, preference_id, False))
        conditions.append(keyset_after(*keys))
    oldest_first = (preference_table.c.created_at, preference_table.c.id)
    statement = select(*_READ_COLUMNS).where(*conditions).order_by(*oldest_first).limit(limit)
    return [Preference.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_by_flow(tx: Transaction, scope: Scope, flow: str, limit: int) -> list[Preference]:
    """Return the preferences in force that name a flow: the most specific and latest, up to a limit."""
    columns = preference_table.c
    statement = select(*_READ_COLUMNS).where(in_force(scope), columns.flow == flow)
    first = (columns.description.is_(None), columns.user_id.is_(None), columns.updated_at.desc(), columns.id)
    rows = (await tx.execute(statement.order_by(*first).limit(limit))).mappings()
    return [Preference.from_row(row) for row in rows]


async def list_by_keys(tx: Transaction, scope: Scope, keys: Sequence[str]) -> dict[str, Preference]:
    """Return the preferences in force that have one of these keys, by key."""
    statement = select(*_READ_COLUMNS).where(in_force(scope), is_any_of(preference_table.c.key, keys))
    rows = (await tx.execute(statement)).mappings()
    return {row["key"]: Preference.from_row(row) for row in rows}


async def list_by_ids(
    tx: Transaction, ids: Sequence[str], *conditions: ColumnElement[bool]
) -> list[Preference]:
    """Return the existing preferences among `ids` that meet the conditions, in no particular order."""
    where = (tenant_filter(preference_table, tx.tenant), is_any_of(preference_table.c.id, ids))
    rows = await tx.execute(select(*_READ_COLUMNS).where(*where, *conditions))
    return [Preference.from_row(row) for row in rows.mappings()]


async def list_matching(
    tx: Transaction, terms: Sequence[str], limit: int, *conditions: ColumnElement[bool]
) -> list[Preference]:
    """Return preferences whose description has any of the terms and that meet the conditions, best first."""
    if not terms:
        return []
    matches, rank = tsvector.matches_any(preference_table.c.search_terms, terms)
    statement = select(*_READ_COLUMNS).where(*conditions, matches)
    best_first = statement.order_by(rank.desc(), preference_table.c.updated_at.desc()).limit(limit)
    return [Preference.from_row(row) for row in (await tx.execute(best_first)).mappings()]


async def insert_new(
    tx: Transaction, scope: Scope, key: str, columns: Mapping[str, Any]
) -> Preference | None:
    """Insert a preference under a key, and return it; None if the key is taken."""
    new_columns = {"id": str(uuid_utils.uuid7()), "key": key, "version": _NEXT_VERSION}
    values = prepared.scope_values(scope) | new_columns | _with_terms(columns)
    statement = insert(preference_table).values(values).on_conflict_do_nothing().returning(*_READ_COLUMNS)
    row = (await tx.execute(statement)).mappings().one_or_none()
    return None if row is None else Preference.from_row(row)


async def replace(tx: Transaction, preference: Preference, columns: Mapping[str, Any]) -> Preference:
    """Replace columns of a locked preference, and return it in its new version."""
    version = func.greatest(preference_table.c.version + 1, _NEXT_VERSION)
    is_row = (tenant_filter(preference_table, preference.tenant), preference_table.c.id == preference.id)
    values = {**_with_terms(columns), "version": version, "updated_at": func.clock_timestamp()}
    statement = update(preference_table).where(*is_row).values(values).returning(*_READ_COLUMNS)
    return Preference.from_row((await tx.execute(statement)).mappings().one())


def _with_terms(columns: Mapping[str, Any]) -> dict[str, Any]:
    terms = literal(tsvector.terms_of(columns["description"] or ""), ARRAY(Text))
    return {**columns, "search_terms": func.array_to_tsvector(terms)}


async def list_known_memories(tx: Transaction, memory_ids: Sequence[str]) -> set[str]:
    """Return those of these memories that a preference was learnt with."""
    column = preference_table.c.memory_id
    where = (tenant_filter(preference_table, tx.tenant), is_any_of(column, memory_ids))
    return set(await tx.scalars(select(column).where(*where)))


async def lock_of(tx: Transaction, subject: Subject, ids: Sequence[str]) -> dict[str, str | None]:
    """Lock the preferences of users, agents or memories, in the order of their ids.

    Return their descriptions by id.
    """
    columns = preference_table.c
    where = (tenant_filter(preference_table, tx.tenant), is_any_of(columns[_OWNER_COLUMNS[subject]], ids))
    statement = select(columns.id, columns.description).where(*where).order_by(columns.id)
    return {row.id: row.description for row in await tx.execute(statement.with_for_update())}


async def hand_over(tx: Transaction, heirs: Mapping[str, str]) -> None:
    """Let preferences go on with other memories: `heirs` has these by the ids of the earlier ones."""
    column = preference_table.c.memory_id
    for memory_id, heir_id in sorted(heirs.items()):
        where = (tenant_filter(preference_table, tx.tenant), column == memory_id)
        await tx.execute(update(preference_table).where(*where).values(memory_id=heir_id))


async def versions(tx: Transaction, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the version of each of these preferences that search can find, by id."""
    columns = preference_table.c
    where = (tenant_filter(preference_table, tx.tenant), is_any_of(columns.id, record_ids), _IS_DESCRIBED)
    rows = await tx.execute(select(columns.id, columns.version).where(*where))
    return {row.id: row.version for row in rows}


async def page_versions(tx: Transaction, after: str, limit: int) -> dict[str, int]:
    """Return one page of what search can find of a tenant, ordered by id, as id → version."""
    columns = preference_table.c
    where = (tenant_filter(preference_table, tx.tenant), columns.id > after, _IS_DESCRIBED)
    statement = select(columns.id, columns.version).where(*where).order_by(columns.id).limit(limit)
    return {row.id: row.version for row in await tx.execute(statement)}


async def count(tx: Transaction) -> int:
    """Return the number of a tenant's preferences that search can find."""
    where = (tenant_filter(preference_table, tx.tenant), _IS_DESCRIBED)
    return int(await tx.scalar(select(func.count()).select_from(preference_table).where(*where)) or 0)
