"""Delete entities and triples of the graph with every copy; tombstones prevent their return by a dream."""

from collections.abc import Sequence
from datetime import timedelta

from shared.foundation.scope import Caller
from shared.infra.postgres import transaction_time
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.lifecycle import deletion
from shared.lifecycle.deletion import Deletion
from shared.memory.graph import entity_queries, merged, tombstones, triple_queries
from shared.memory.graph.entity import Entity
from shared.memory.graph.invalidate import NO_TRIPLE
from shared.memory.graph.read import NO_ENTITY
from shared.memory.graph.triple import Triple
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources


@repeated_after_deadlock
async def delete_entity(resources: Resources, caller: Caller, entity_id: str) -> bool:
    """Delete an entity with its triples, and return whether there was one that the caller sees.

    Raises errors.Forbidden if the key may only read it.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        entity = await entity_queries.get(tx, entity_id, lock=True)
        if entity is None:
            return False
        owner = Owner(entity.agent_id, entity.user_id)
        if not _require_writable(caller, owner, NO_ENTITY):
            return False
        dropped_ids = await merged.list_dropped(tx, entity)
        dropped = [await entity_queries.get(tx, id_, lock=True) for id_ in dropped_ids]
        ids = [item.id for item in dropped if item is not None and item.is_merged]
        await delete_entity_rows(tx, entity, ids)
    return True


async def delete_entity_rows(tx: Transaction, entity: Entity, dropped_ids: Sequence[str] = ()) -> None:
    """Delete a locked entity with its triples, and store tombstones of its names.

    `dropped_ids` are of locked entities that were merged into it: it has what they say, and else an undo of
    the merge would bring that back.
    """
    rows = Deletion(entity.tenant)
    await deletion.add_entities(tx, rows, [entity.id, *dropped_ids])
    await tombstones.add(tx, entity.scope, [(name,) for name in entity.names])
    await deletion.carry_out(tx, rows)


@repeated_after_deadlock
async def delete_triple(resources: Resources, caller: Caller, triple_id: str) -> bool:
    """Delete a triple, and return whether there was one that the caller sees. Raises as `delete_entity`."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        triple = (await triple_queries.lock(tx, [triple_id])).get(triple_id)
        if triple is None:
            return False
        if not _require_writable(caller, Owner(triple.agent_id, triple.user_id), NO_TRIPLE):
            return False
        await delete_triple_rows(tx, triple, await _lock_moved(tx, triple))
    return True


async def _lock_moved(tx: Transaction, triple: Triple) -> list[Triple]:
    """Lock and return the triples that said this of entities that were merged into its own."""
    if triple.expired_at is not None:
        return []
    ids = [id_ for id_ in (triple.subject_id, triple.object_id) if id_ is not None]
    ends = await entity_queries.list_by_ids(tx, ids)
    same = {id_: [id_, *await merged.list_dropped(tx, entity)] for id_, entity in ends.items()}
    object_ids = same[triple.object_id] if triple.object_id is not None else []
    return await triple_queries.lock_moved(tx, triple, same[triple.subject_id], object_ids)


async def delete_triple_rows(
    tx: Transaction, triple: Triple, moved: Sequence[Triple] = (), *, entombs: bool = True
) -> None:
    """Delete a locked triple, and store a tombstone of what it says unless it may be said by a dream yet.

    `moved` are locked triples that said it before entities were merged, and that an undo would bring back.
    """
    rows = Deletion(triple.tenant)
    same = [triple, *moved]
    deletion.add_triples(rows, [item.id for item in same])
    if entombs:
        words = [(item.subject, item.predicate, item.object) for item in same]
        await tombstones.add(tx, triple.scope, words)
    await deletion.carry_out(tx, rows)


def _require_writable(caller: Caller, owner: Owner, missing: str) -> bool:
    """Return whether the caller sees a record; raise errors.Forbidden if it may only read it."""
    if not rights.allows(caller, Area.MEMORIES, Action.READ, owner):
        return False
    rights.require(caller, Area.MEMORIES, Action.WRITE, owner, missing)
    return True


async def purge_expired(tx: Transaction, age: timedelta, limit: int) -> int:
    """Delete what was invalidated longer ago than this, without tombstones, and return how many records."""
    before = await transaction_time(tx) - age
    rows = Deletion(tx.tenant)
    entity_ids = await entity_queries.lock_expired_before(tx, before, limit)
    await deletion.add_entities(tx, rows, entity_ids)
    triple_ids = await triple_queries.lock_expired_before(tx, before, limit)
    deletion.add_triples(rows, triple_ids)
    await deletion.carry_out(tx, rows)
    return len(entity_ids) + len(triple_ids)
