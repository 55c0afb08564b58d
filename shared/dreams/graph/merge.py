"""Merge two entities of a graph that are one.

The one that is kept gets the names of the other as aliases. The triples of the other are said of the kept
one, with the same sources, and are invalidated where they were; then the other expires. All is recorded for
undo.
"""

from collections.abc import Sequence
from typing import Any

from shared.dreams.graph.applied_graph import CREATED, INVALIDATED, WIDENED, GraphPass, state_of
from shared.dreams.verification.graph_changes import EntityMerge
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors
from shared.foundation.origin import Origin
from shared.memory.graph import entity_queries, review_queries, save, triple_queries
from shared.memory.graph.entity import MERGED, Entity, EntityDraft, EntityType, join_aliases
from shared.memory.graph.save import Ends
from shared.memory.graph.triple import Triple, TripleDraft, TripleSource

MAX_TRIPLES = 200
"""An entity with more triples is not merged: what is known that well is no slip of the pen."""


async def merge(pass_: GraphPass, item: EntityMerge) -> None:
    """Merge two entities, unless one of them was changed meanwhile or others than this scope build on it."""
    tx, scope = pass_.tx, pass_.scope
    ids = [item.kept_id, item.dropped_id]
    locked = {id_: await entity_queries.get(tx, id_, lock=True) for id_ in sorted(ids)}
    kept, dropped = (locked[id_] for id_ in ids)
    if kept is None or dropped is None or not (_is_free(pass_, kept) and _is_free(pass_, dropped)):
        pass_.skip(RejectionCode.CHANGED_MEANWHILE, "merge", *ids)
        return
    triples = await review_queries.lock_live_of(tx, dropped.id, MAX_TRIPLES + 1)
    if len(triples) > MAX_TRIPLES:
        pass_.skip(RejectionCode.OVER_QUOTA, "merge", *ids)
    elif any(triple.scope != scope for triple in triples):
        pass_.skip(RejectionCode.CROSSES_USERS, "merge", *ids)
    elif await _widen(pass_, kept, dropped):
        for triple in triples:
            await _move(pass_, triple, kept, dropped)
        await entity_queries.expire(tx, dropped, MERGED)
        pass_.note(INVALIDATED, "entity", dropped.id, reason=MERGED)
    else:
        pass_.skip(RejectionCode.TOO_MANY_LABELS, "merge", *ids)


def _is_free(pass_: GraphPass, entity: Entity) -> bool:
    return entity.expired_at is None and not entity.is_kept and entity.scope == pass_.scope


async def _widen(pass_: GraphPass, kept: Entity, dropped: Entity) -> bool:
    """Give an entity the names, the metadata and the sources of another; return whether it can have them."""
    tx = pass_.tx
    draft = EntityDraft(
        name=kept.name,
        type=dropped.type if kept.type is EntityType.TOPIC else None,
        aliases=join_aliases(kept.name, dropped.names),
        metadata=dropped.metadata | kept.metadata,
    )
    try:
        after = await save.upsert_entity(tx, pass_.scope, draft, derived=dropped.is_derived, revives=False)
    except errors.LimitReached:
        return False
    sources = await review_queries.list_sources(tx, dropped.id)
    added = await _add_sources(pass_, {"entity_id": kept.id}, sources)
    pass_.note(
        WIDENED, "entity", kept.id, reason=MERGED, before=state_of(kept), after=state_of(after) | added
    )
    return True


async def _move(pass_: GraphPass, triple: Triple, kept: Entity, dropped: Entity) -> None:
    """Say of the kept entity what a triple says of the dropped one, and invalidate the triple.

    What would connect the kept entity with itself says nothing but that the two are one.
    """
    tx = pass_.tx
    subject_id, object_id = (
        kept.id if id_ == dropped.id else id_ for id_ in (triple.subject_id, triple.object_id)
    )
    if subject_id != object_id or triple.subject_id == triple.object_id:
        await _copy(pass_, triple, Ends(subject_id or kept.id, object_id))
    await triple_queries.expire(tx, triple.id, MERGED)
    pass_.note(INVALIDATED, "triple", triple.id, reason=MERGED)


async def _copy(pass_: GraphPass, triple: Triple, ends: Ends) -> None:
    tx, scope = pass_.tx, pass_.scope
    literal = triple.object if triple.object_id is None else None
    draft = TripleDraft(
        subject=triple.subject,
        predicate=triple.predicate,
        object=None if triple.object_id is None else triple.object,
        literal=literal,
        fact=triple.fact,
        confidence=triple.confidence,
        valid_at=triple.valid_at,
        invalid_at=triple.invalid_at,
    )
    key = triple_queries.object_key(ends.object_id, literal)
    same = await triple_queries.list_same(tx, scope, ends.subject_id, triple.predicate, key)
    # Derived, so that undo removes it; a caller who says it too makes it their own.
    origin = Origin.derived([triple.origin.trust])
    after = await save.write_triple(tx, scope, draft, ends, [], origin, derived=True)
    added = await _add_sources(pass_, {"triple_id": after.id}, triple.sources)
    state = {"confidence": after.confidence} | added
    before = next((item for item in same if item.id == after.id), None)
    if before is None:
        pass_.note(CREATED, "triple", after.id, reason=MERGED, after=state)
    else:
        confidence = {"confidence": before.confidence}
        pass_.note(WIDENED, "triple", after.id, reason=MERGED, before=confidence, after=state)


async def _add_sources(
    pass_: GraphPass, record: dict[str, str], sources: Sequence[TripleSource]
) -> dict[str, Any]:
    """Add sources to a record, and return those that it did not have as part of its state."""
    added = await triple_queries.add_sources(pass_.tx, record, sources)
    return {"added_sources": [source.model_dump() for source in added]} if added else {}
