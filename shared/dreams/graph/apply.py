"""Apply what a pass asks for in its graph, in the transaction that ends the pass.

Nothing is overwritten: an entity gets aliases, an open triple that says the same a higher confidence, and
what is stale, or has gone to another entity, is invalidated. Each change is recorded with what it has
replaced, for undo.
"""

from collections.abc import Mapping, Sequence

from shared.dreams.graph import merge, queries
from shared.dreams.graph.applied_graph import (
    CREATED,
    INVALIDATED,
    WIDENED,
    AppliedGraph,
    GraphPass,
    state_of,
)
from shared.dreams.verification.graph_changes import Expiry, ExtractedEntity, ExtractedTriple, GraphChanges
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle import closed_facts
from shared.memory.graph import entity_queries, merged, review_queries, save, tombstones, triple_queries
from shared.memory.graph.triple import Triple


async def apply(tx: Transaction, scope: Scope, run_id: str, name: str, changes: GraphChanges) -> AppliedGraph:
    """Apply the changes of a pass, record them, and return them."""
    applied = AppliedGraph()
    pass_ = GraphPass(tx, scope, run_id, name, applied)
    await _draw(pass_, changes)
    for item in changes.merges:
        await merge.merge(pass_, item)
    for expiry in changes.expiries:
        await _expire(pass_, expiry)
    await _close_facts(pass_, changes)
    await queries.insert_changes(tx, applied.diff)
    await queries.save_extracted(tx, changes.extracted)
    await review_queries.mark_reviewed(tx, changes.reviewed)
    return applied


async def _draw(pass_: GraphPass, changes: GraphChanges) -> None:
    """Add what was extracted, but for what a caller has deleted."""
    known = await _known_names(pass_, changes)
    deleted = await _deleted(pass_, changes, known)
    for entity in changes.entities:
        if {(name,) for name in (entity.draft.name, *entity.draft.aliases)} & deleted:
            pass_.skip(RejectionCode.FORGOTTEN, "entity")
        else:
            await _apply_entity(pass_, entity)
    for triple in changes.triples:
        if _words_of(triple, known) & deleted:
            pass_.skip(RejectionCode.FORGOTTEN, "triple")
        else:
            await _apply_triple(pass_, triple)


async def _close_facts(pass_: GraphPass, changes: GraphChanges) -> None:
    """Invalidate the triples that come from memories which are closed: by this pass, or before it."""
    named = None if changes.closes_facts else [*changes.closed_memories, *changes.extracted]
    if named == []:
        return
    closed = await closed_facts.invalidate(pass_.tx, pass_.scope, named, keeps=True)
    for fact in closed:
        after = {"memory_ids": fact.memory_ids}
        reason = closed_facts.MEMORY_CLOSED
        pass_.note(INVALIDATED, "triple", fact.triple_id, reason=reason, after=after)


async def _known_names(pass_: GraphPass, changes: GraphChanges) -> dict[str, list[str]]:
    """Return all names of the entities that the proposed triples name, by the names given."""
    drafts = [item.draft for item in changes.triples]
    named = {name for draft in drafts for name in (draft.subject, draft.object) if name is not None}
    return await tombstones.known_names(pass_.tx, pass_.scope, named)


async def _deleted(
    pass_: GraphPass, changes: GraphChanges, known: Mapping[str, Sequence[str]]
) -> set[tombstones.Words]:
    """Return what of the proposed names and triples a caller has deleted."""
    proposed: set[tombstones.Words] = {words for item in changes.triples for words in _words_of(item, known)}
    for item in changes.entities:
        proposed |= {(name,) for name in (item.draft.name, *item.draft.aliases)}
    if not proposed:
        return set()
    return await tombstones.find_deleted(pass_.tx, pass_.scope, proposed)


def _words_of(triple: ExtractedTriple, known: Mapping[str, Sequence[str]]) -> set[tombstones.Words]:
    draft = triple.draft
    object_ = draft.object or draft.literal or ""
    return tombstones.words_of_triple(draft.subject, draft.predicate, object_, known)


async def _apply_entity(pass_: GraphPass, extracted: ExtractedEntity) -> None:
    tx, scope = pass_.tx, pass_.scope
    draft, before = await merged.lock_named(tx, scope, extracted.draft)
    try:
        after = await save.upsert_entity(tx, scope, draft, derived=True)
    except errors.LimitReached:
        pass_.skip(RejectionCode.TOO_MANY_LABELS, "entity")
        return
    await triple_queries.add_sources(tx, {"entity_id": after.id}, extracted.sources)
    if before is None:
        pass_.note(CREATED, "entity", after.id)
    elif after != before:
        pass_.note(WIDENED, "entity", after.id, before=state_of(before), after=state_of(after))


async def _apply_triple(pass_: GraphPass, extracted: ExtractedTriple) -> None:
    tx, scope, draft = pass_.tx, pass_.scope, extracted.draft
    known = await entity_queries.resolve_names(tx, scope, [draft.subject, draft.object or ""])
    ends = await save.resolve_ends(tx, scope, draft, derived=True)
    for entity_id in set(ends.ids) - set(known.values()):
        pass_.note(CREATED, "entity", entity_id)
        record = {"entity_id": entity_id}
        await triple_queries.add_sources(tx, record, extracted.sources)
    before = await _find_open(tx, scope, extracted, ends)
    origin = Origin.derived([extracted.trust])
    after = await save.write_triple(tx, scope, draft, ends, extracted.sources, origin, derived=True)
    if before is None:
        pass_.note(CREATED, "triple", after.id)
    elif before.confidence != after.confidence:
        old, new = {"confidence": before.confidence}, {"confidence": after.confidence}
        pass_.note(WIDENED, "triple", after.id, before=old, after=new)


async def _find_open(
    tx: Transaction, scope: Scope, extracted: ExtractedTriple, ends: save.Ends
) -> Triple | None:
    draft = extracted.draft
    key = triple_queries.object_key(ends.object_id, draft.literal)
    same = await triple_queries.list_same(tx, scope, ends.subject_id, draft.predicate, key)
    return next((item for item in same if item.invalid_at is None and item.expired_at is None), None)


async def _expire(pass_: GraphPass, expiry: Expiry) -> None:
    """Invalidate what is still as it was: whoever has changed or restored it meanwhile wants it."""
    tx = pass_.tx
    if expiry.record == "triple":
        ids = [expiry.id, *([] if expiry.other_id is None else [expiry.other_id])]
        locked = await triple_queries.lock(tx, ids)
        if any(id_ not in locked or locked[id_].expired_at is not None for id_ in ids):
            return
        if locked[expiry.id].is_kept:
            return
        await triple_queries.invalidate(tx, expiry.id, expiry.at, expiry.reason)
    else:
        entity = await entity_queries.get(tx, expiry.id, lock=True)
        if entity is None or entity.expired_at is not None or entity.is_kept:
            return
        await entity_queries.expire(tx, entity, expiry.reason)
    pass_.note(INVALIDATED, expiry.record, expiry.id, reason=expiry.reason)
