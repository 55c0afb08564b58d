"""Every statement on entities and their names. Functions take the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import uuid_utils
from sqlalchemy import ARRAY, ColumnElement, Text, and_, bindparam, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter, visible_scope
from shared.infra.transaction import Transaction
from shared.memory.graph.entity import MERGED, Entity
from shared.memory.graph.names import fold, key_of
from shared.memory.graph.table import graph_entity, graph_name

_READ_COLUMNS = [column for column in graph_entity.c if column.name not in {"folded_name", "reviewed_at"}]


async def get(tx: Transaction, entity_id: str, *, lock: bool = False) -> Entity | None:
    """Return an entity, or None; `lock` locks it until the transaction ends."""
    where = (tenant_filter(graph_entity, tx.tenant), graph_entity.c.id == entity_id)
    statement = select(*_READ_COLUMNS).where(*where)
    found = await _read(tx, statement.with_for_update() if lock else statement)
    return found[0] if found else None


async def lock_named(tx: Transaction, scope: Scope, name: str) -> Entity | None:
    """Lock and return the entity of exactly this scope that has this name, expired or not, or None."""
    where = (exact_scope(graph_entity, scope), graph_entity.c.folded_name == fold(name))
    found = await _read(tx, select(*_READ_COLUMNS).where(*where).with_for_update())
    return found[0] if found else None


async def find_live_named(tx: Transaction, scope: Scope, name: str) -> str | None:
    """Return the id of the oldest live entity of exactly this scope that has this name or alias, or None."""
    named = select(graph_name.c.entity_id).where(
        exact_scope(graph_name, scope), graph_name.c.folded == fold(name)
    )
    where = (exact_scope(graph_entity, scope), graph_entity.c.expired_at.is_(None))
    statement = select(graph_entity.c.id).where(*where, graph_entity.c.id.in_(named))
    return await tx.scalar(statement.order_by(graph_entity.c.id).limit(1))


async def list_page(
    tx: Transaction, scope: Scope, filters: Mapping[str, Any], limit: int, after: str
) -> list[Entity]:
    """Return entities that a scope sees, oldest first, from the id `after` on.

    `filters` are `name` (or an alias), `type`, and `any`: whether those that have expired are meant too.
    """
    conditions = [visible_scope(graph_entity, scope), graph_entity.c.id > after]
    if not filters.get("any"):
        conditions.append(graph_entity.c.expired_at.is_(None))
    if (name := filters.get("name")) is not None:
        named = select(graph_name.c.entity_id).where(
            tenant_filter(graph_name, scope.tenant),
            graph_name.c.agent_id == scope.agent_id,
            graph_name.c.folded == fold(name),
        )
        conditions.append(graph_entity.c.id.in_(named))
    if (type_ := filters.get("type")) is not None:
        conditions.append(graph_entity.c.type == type_)
    return await _select(tx, *conditions, limit=limit)


async def list_scope_page(
    tx: Transaction, scope: Scope, after: str, limit: int, *, live: bool = False
) -> list[Entity]:
    """Return the entities of exactly this scope by id, from the id `after` on; all, or the live ones."""
    conditions = [exact_scope(graph_entity, scope), graph_entity.c.id > after]
    if live:
        conditions.append(graph_entity.c.expired_at.is_(None))
    return await _select(tx, *conditions, limit=limit)


async def list_by_ids(tx: Transaction, ids: Sequence[str]) -> dict[str, Entity]:
    """Return those of these entities that exist, by id."""
    where = (tenant_filter(graph_entity, tx.tenant), is_any_of(graph_entity.c.id, ids))
    return {entity.id: entity for entity in await _select(tx, *where)}


async def _select(
    tx: Transaction, *conditions: ColumnElement[bool], limit: int | None = None
) -> list[Entity]:
    statement = select(*_READ_COLUMNS).where(*conditions).order_by(graph_entity.c.id).limit(limit)
    return await _read(tx, statement)


async def _read(tx: Transaction, statement: Any) -> list[Entity]:
    return [Entity.from_row(row) for row in (await tx.execute(statement)).mappings()]


_RESOLVE = text(
    """
    SELECT n.folded, e.id
    FROM graph_name n JOIN graph_entity e ON e.tenant = n.tenant AND e.id = n.entity_id
    WHERE n.tenant = :tenant AND n.agent_id = :agent_id AND n.folded = ANY (:folded)
        AND (n.user_id IS NULL OR n.user_id = CAST(:user_id AS text))
    ORDER BY n.user_id IS NULL, e.expired_at IS NOT NULL, n.folded <> e.folded_name, e.id
    """
).bindparams(bindparam("folded", type_=ARRAY(Text)), bindparam("user_id", type_=Text))


async def resolve_names(tx: Transaction, scope: Scope, names: Sequence[str]) -> dict[str, str]:
    """Return the id of the entity that a scope sees under each of these names, by folded name.

    The user's own entity comes before a common one, one of this name before one with such an alias, and the
    older before the younger.
    """
    values = prepared.scope_values(scope) | {"folded": [fold(name) for name in names]}
    rows = await tx.fetch(_RESOLVE, values)
    return {row["folded"]: row["id"] for row in reversed(rows)}


async def list_named(tx: Transaction, scope: Scope, names: Sequence[str]) -> list[str]:
    """Return the ids of all entities that a scope sees and that have one of these names or aliases."""
    values = prepared.scope_values(scope) | {"folded": [fold(name) for name in names]}
    return [row["id"] for row in await tx.fetch(_RESOLVE, values)]


# With the condition on `id` of those that are meant.
TOUCH = """
    UPDATE graph_entity SET last_referenced_at = now()
    WHERE tenant = :tenant AND id IN (
        SELECT id FROM graph_entity
        WHERE tenant = :tenant AND {is_meant}
            AND (last_referenced_at IS NULL OR last_referenced_at < now() - interval '1 minute')
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
    )
"""
_TOUCH = text(TOUCH.format(is_meant="id = ANY (:ids)")).bindparams(bindparam("ids", type_=ARRAY(Text)))


async def touch(tx: Transaction, ids: Sequence[str]) -> None:
    """Note that entities were referenced now, to the minute. One that somebody else writes is passed over."""
    if ids:
        await tx.fetch(_TOUCH, {"tenant": tx.tenant, "ids": list(ids)})


async def insert_new(tx: Transaction, scope: Scope, name: str, columns: Mapping[str, Any]) -> Entity | None:
    """Insert an entity with its names and return it, or None if the scope has one of this name."""
    row = {
        "tenant": scope.tenant,
        "id": str(uuid_utils.uuid7()),
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "name": name,
        "folded_name": fold(name),
        **columns,
    }
    statement = insert(graph_entity).values(row).on_conflict_do_nothing().returning(*_READ_COLUMNS)
    entities = await _read(tx, statement)
    for entity in entities:
        await _write_names(tx, entity)
    return entities[0] if entities else None


async def replace(tx: Transaction, entity: Entity, columns: Mapping[str, Any]) -> Entity:
    """Change columns of a locked entity, and its names with them; return it as it is then."""
    where = (tenant_filter(graph_entity, entity.tenant), graph_entity.c.id == entity.id)
    statement = update(graph_entity).where(*where).values({"updated_at": func.now(), **columns})
    (changed,) = await _read(tx, statement.returning(*_READ_COLUMNS))
    if changed.aliases != entity.aliases:
        names_entity = (tenant_filter(graph_name, entity.tenant), graph_name.c.entity_id == entity.id)
        await tx.execute(delete(graph_name).where(*names_entity))
        await _write_names(tx, changed)
    return changed


async def expire(tx: Transaction, entity: Entity, reason: str) -> None:
    """Let a locked entity expire now: no message is about it any more, and no traversal passes it."""
    where = (tenant_filter(graph_entity, entity.tenant), graph_entity.c.id == entity.id)
    values = {"expired_at": func.now(), "reason": reason}
    await tx.execute(update(graph_entity).where(*where).values(values))


async def _write_names(tx: Transaction, entity: Entity) -> None:
    folded_names = dict.fromkeys(fold(name) for name in entity.names)
    owner = {"tenant": entity.tenant, "agent_id": entity.agent_id, "user_id": entity.user_id}
    rows = [
        {**owner, "entity_id": entity.id, "folded": folded, "key": key_of(folded)} for folded in folded_names
    ]
    await tx.execute(insert(graph_name).values(rows))


async def lock_shared(tx: Transaction, ids: Sequence[str]) -> dict[str, Entity]:
    """Return those of these entities that exist, by id, and keep them from being deleted until the end."""
    where = (tenant_filter(graph_entity, tx.tenant), is_any_of(graph_entity.c.id, ids))
    statement = select(*_READ_COLUMNS).where(*where).order_by(graph_entity.c.id)
    locked = await _read(tx, statement.with_for_update(read=True, key_share=True))
    return {entity.id: entity for entity in locked}


async def list_merged_of(tx: Transaction, entity: Entity) -> list[tuple[str, str]]:
    """Return ids and names of the entities of its scope that were merged and have a name of its aliases."""
    is_merged = and_(graph_entity.c.expired_at.is_not(None), graph_entity.c.reason == MERGED)
    is_alias = is_any_of(graph_entity.c.folded_name, map(fold, entity.aliases))
    where = (exact_scope(graph_entity, entity.scope), is_merged, is_alias)
    statement = select(graph_entity.c.id, graph_entity.c.name).where(*where).order_by(graph_entity.c.id)
    return [(row.id, row.name) for row in await tx.execute(statement)]


async def adopt(tx: Transaction, scope: Scope, ids: Sequence[str]) -> None:
    """Note that a caller has named entities: they stay when what they were extracted from goes.

    Only those of exactly the scope that the caller writes: a user changes no common entity.
    """
    where = (exact_scope(graph_entity, scope), is_any_of(graph_entity.c.id, ids))
    values = {"is_derived": False}
    await tx.execute(update(graph_entity).where(*where, graph_entity.c.is_derived).values(values))


async def lock_of(tx: Transaction, **owner: str) -> list[str]:
    """Lock the entities of an owner, by id, and return their ids.

    An owner is `user_id`, of all agents, or `agent_id`, of all users.
    """
    conditions = [graph_entity.c[name] == value for name, value in owner.items()]
    statement = select(graph_entity.c.id).where(tenant_filter(graph_entity, tx.tenant), *conditions)
    ordered = statement.order_by(graph_entity.c.id).with_for_update()
    return list((await tx.scalars(ordered)).all())


async def lock_expired_before(tx: Transaction, moment: datetime, limit: int) -> list[str]:
    """Lock entities that expired before a time, and return their ids."""
    where = (tenant_filter(graph_entity, tx.tenant), graph_entity.c.expired_at < moment)
    statement = select(graph_entity.c.id).where(*where).order_by(graph_entity.c.id).limit(limit)
    return list((await tx.scalars(statement.with_for_update(skip_locked=True))).all())
