"""The statements on preferences that no other kind has. Functions take the caller's transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    and_,
    exists,
    or_,
    select,
    update,
)

from shared.foundation.content import Subject
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter, visible_scope
from shared.infra.transaction import Transaction
from shared.memory.preferences.preference import Preference
from shared.memory.preferences.record_type import IS_DESCRIBED, PREFERENCE, is_suspended
from shared.memory.preferences.table import preference as preference_table

_OWNER_COLUMNS = {Subject.USER: "user_id", Subject.AGENT: "agent_id", Subject.MEMORY: "memory_id"}


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
    return and_(is_permitted, ~is_suspended(table))


def of_flow(flow: str | None) -> ColumnElement[bool]:
    """Return the condition that a described preference is for this flow or for any; without one, for all."""
    if flow is None:
        return IS_DESCRIBED
    column = preference_table.c.flow
    return IS_DESCRIBED & or_(column.is_(None), column == flow)


def _is_named(scope: Scope, key: str) -> ColumnElement[bool]:
    return and_(exact_scope(preference_table, scope), preference_table.c.key == key)


async def lock(tx: Transaction, scope: Scope, key: str) -> Preference | None:
    """Lock and return the preference that exactly this scope has under a key, or None."""
    return await PREFERENCE.find(tx, _is_named(scope, key), lock=True)


async def lock_learnt(tx: Transaction, memory_id: str) -> list[Preference]:
    """Lock and return the preferences that were learnt with a memory."""
    columns = preference_table.c
    return await PREFERENCE.read(tx, columns.memory_id == memory_id, order=(columns.id,), lock=True)


async def find_visible(tx: Transaction, scope: Scope, key: str) -> Preference | None:
    """Return what a scope sees under a key: the user's own before the agent's. Or None."""
    where = (visible_scope(preference_table, scope), preference_table.c.key == key)
    return await PREFERENCE.find(tx, *where, order=(preference_table.c.user_id.nulls_last(),))


async def list_by_flow(tx: Transaction, scope: Scope, flow: str, limit: int) -> list[Preference]:
    """Return the preferences in force that name a flow: the most specific and latest, up to a limit."""
    columns = preference_table.c
    order = (columns.description.is_(None), columns.user_id.is_(None), columns.updated_at.desc(), columns.id)
    return await PREFERENCE.read(tx, in_force(scope), columns.flow == flow, order=order, limit=limit)


async def list_by_keys(tx: Transaction, scope: Scope, keys: Sequence[str]) -> dict[str, Preference]:
    """Return the preferences in force that have one of these keys, by key."""
    found = await PREFERENCE.read(tx, in_force(scope), is_any_of(preference_table.c.key, keys))
    return {preference.key: preference for preference in found}


async def insert_new(
    tx: Transaction, scope: Scope, key: str, columns: Mapping[str, Any], origin: Origin
) -> Preference | None:
    """Insert a preference under a key, and return it; None if the key is taken."""
    row = {**prepared.scope_values(scope), "key": key, **columns}
    return await PREFERENCE.insert_unless_taken(tx, row, origin)


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
