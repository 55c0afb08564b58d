"""Entities that a dream has merged into others: who names one of them means the one that was kept.

Its names are aliases of that one by then. So nothing is said of the dropped entity any more, until the merge
is undone.
"""

from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.graph import entity_queries
from shared.memory.graph.entity import Entity, EntityDraft, join_aliases

_MAX_ATTEMPTS = 5


async def find_kept(tx: Transaction, dropped: Entity, *, shared: bool = False) -> Entity | None:
    """Lock and return the live entity that an entity was merged into.

    With `shared` it is only kept from being deleted. None if the entity is not merged, or if no live one of
    its scope has its name: then it is the one that is meant. Raises errors.Busy if others keep merging it.
    """
    if not dropped.is_merged:
        return None
    for _ in range(_MAX_ATTEMPTS):
        id_ = await entity_queries.find_live_named(tx, dropped.scope, dropped.name)
        if id_ is None:
            return None
        if shared:
            kept = (await entity_queries.lock_shared(tx, [id_])).get(id_)
        else:
            kept = await entity_queries.get(tx, id_, lock=True)
        if kept is not None and kept.expired_at is None:
            return kept  # and else it was deleted, or merged itself, while this one waited for it
    raise errors.Busy("others keep merging and deleting this part of the graph")


async def list_dropped(tx: Transaction, kept: Entity) -> list[str]:
    """Return the ids of the entities that were merged into a live entity."""
    if not kept.aliases or kept.expired_at is not None:
        return []
    return [
        id_
        for id_, name in await entity_queries.list_merged_of(tx, kept)
        if await entity_queries.find_live_named(tx, kept.scope, name) == kept.id
    ]


async def lock_named(tx: Transaction, scope: Scope, draft: EntityDraft) -> tuple[EntityDraft, Entity | None]:
    """Lock and return the entity of exactly this scope that a draft is of, or None, with the draft.

    If it was merged, that is the kept one, and the draft is one of that name, with its own as an alias.
    """
    before = await entity_queries.lock_named(tx, scope, draft.name)
    kept = None if before is None else await find_kept(tx, before)
    if kept is None:
        return draft, before
    return under_name(kept.name, draft), kept


def under_name(name: str, draft: EntityDraft) -> EntityDraft:
    """Return a draft under another name of the same entity, of which its own name is an alias."""
    aliases = join_aliases(name, [draft.name, *draft.aliases])
    return draft.model_copy(update={"name": name, "aliases": aliases})
