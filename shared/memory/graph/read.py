"""Read entities and triples, and find those that a message is about."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from shared.foundation import errors, validation
from shared.foundation.scope import Caller, Scope
from shared.infra.transaction import Transaction
from shared.memory.graph import entity_queries, match_queries, names, traverse_queries, triple_queries
from shared.memory.graph.entity import Entity
from shared.memory.graph.invalidate import require as require_triple
from shared.memory.graph.traversal import Step, join_same
from shared.memory.graph.triple import Triple
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources

MAX_MATCHES = 20
"""Entities that a message is about at most: those that were referenced last."""
MAX_SEEDS = 20
NO_ENTITY = "no such entity"


async def get_entity(resources: Resources, caller: Caller, entity_id: str) -> Entity:
    """Return an entity. Raises errors.NotFound if there is none that the caller may read."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        entity = await entity_queries.get(tx, entity_id)
    if entity is None:
        raise errors.NotFound(NO_ENTITY)
    owner = Owner(entity.agent_id, entity.user_id)
    rights.require(caller, Area.MEMORIES, Action.READ, owner, NO_ENTITY)
    return entity


async def get_triple(resources: Resources, caller: Caller, triple_id: str) -> Triple:
    """Return a triple. Raises errors.NotFound if there is none that the caller may read."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        triple = await triple_queries.get(tx, triple_id)
    return require_triple(caller, triple, Action.READ)


async def list_entities(
    resources: Resources, scope: Scope, filters: Mapping[str, Any], limit: int, after: str
) -> list[Entity]:
    """Return entities that a scope sees, oldest first, as `entity_queries.list_page` does."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await entity_queries.list_page(tx, scope, filters, limit, after)


async def list_triples(
    resources: Resources, scope: Scope, filters: Mapping[str, Any], limit: int, after: str
) -> list[Triple]:
    """Return triples that a scope sees, oldest first, as `triple_queries.list_page` does."""
    if filters.get("as_of") is not None:
        filters = {**filters, "as_of": validation.check_time(filters["as_of"], "as_of")}
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await triple_queries.list_page(tx, scope, filters, limit, after)


async def match(
    resources: Resources, caller: Caller, scope: Scope, message: str, as_of: datetime | None = None
) -> list[Entity]:
    """Return the entities whose name or alias occurs in a message as whole words, and note the reference.

    At a time in the past, those are meant that had not expired by then. A key notes it of what it may write.
    """
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        entities = await match_in(tx, scope, message, as_of)
        touched = [entity.id for entity in entities if _may_write(caller, entity)]
        await entity_queries.touch(tx, touched)
    return entities


def _may_write(caller: Caller, entity: Entity) -> bool:
    owner = Owner(entity.agent_id, entity.user_id)
    return "write" in caller.rights and rights.allows(caller, Area.MEMORIES, Action.WRITE, owner)


async def match_in(
    tx: Transaction, scope: Scope, message: str, as_of: datetime | None = None
) -> list[Entity]:
    """Return the entities that a message is about, within the caller's transaction."""
    as_of = None if as_of is None else validation.check_time(as_of, "as_of")
    words = names.message_words(validation.check_text(message, "text"))
    return await match_queries.list_named_in(tx, scope, words, as_of, MAX_MATCHES)


async def connected(resources: Resources, scope: Scope, message: str, *, hops: int, limit: int) -> list[Step]:
    """Return what is connected with the entities that a message is about, as `traverse` does."""
    words = names.message_words(validation.check_text(message, "text"))
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        steps = await traverse_queries.list_named_in_message(
            tx, scope, words, seeds=MAX_MATCHES, hops=hops, width=2 * limit
        )
    return join_same(steps)[:limit]


async def traverse(
    resources: Resources, scope: Scope, named: Sequence[str], hops: int, limit: int, as_of: datetime | None
) -> list[Step]:
    """Return what is connected with entities, given by id or name: nearest first, then most certain.

    Raises errors.NotFound if the scope sees none of them.
    """
    checked = [names.check_name(name, f"names.{position}") for position, name in enumerate(named)]
    as_of = None if as_of is None else validation.check_time(as_of, "as_of")
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        seeds = await _resolve_seeds(tx, scope, checked)
        if not seeds:
            raise errors.NotFound(NO_ENTITY)
        return await traverse_in(tx, scope, seeds, hops=hops, limit=limit, as_of=as_of)


async def _resolve_seeds(tx: Transaction, scope: Scope, named: Sequence[str]) -> list[str]:
    by_id = await entity_queries.list_by_ids(tx, named)
    seen = [
        entity for entity in by_id.values() if entity.scope in (scope, Scope(scope.tenant, scope.agent_id))
    ]
    by_name = await entity_queries.list_named(tx, scope, named)
    return list(dict.fromkeys([entity.id for entity in seen] + by_name))


async def traverse_in(
    tx: Transaction,
    scope: Scope,
    entity_ids: Sequence[str],
    *,
    hops: int,
    limit: int,
    as_of: datetime | None = None,
) -> list[Step]:
    """Return what is connected with entities, within the caller's transaction, as `traverse` does."""
    steps = await traverse_queries.list_connected(
        tx, scope, entity_ids[:MAX_SEEDS], hops=hops, width=2 * limit, as_of=as_of
    )
    return join_same(steps)[:limit]
