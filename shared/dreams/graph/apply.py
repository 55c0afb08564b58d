"""Apply what a pass asks for in its graph, in the transaction that ends the pass.

Nothing is overwritten: an entity gets aliases, an open triple that says the same a higher confidence, and
what is stale is invalidated. Each change is recorded with what it has replaced, for undo.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.dreams.graph import queries
from shared.dreams.verification.graph_changes import ExtractedEntity, ExtractedTriple, GraphChanges, Record
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.memory.graph import entity_queries, save, tombstones, triple_queries
from shared.memory.graph.entity import Entity
from shared.memory.graph.names import fold
from shared.memory.graph.triple import Triple

CREATED, WIDENED, INVALIDATED = "created", "widened", "invalidated"


@dataclass(slots=True)
class AppliedGraph:
    """What was changed, as rows of the diff, and the items that were left out."""

    diff: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """The number of changes by action and record."""
        return dict(Counter(f"{change['record']}_{change['action']}" for change in self.diff))


@dataclass(frozen=True, slots=True)
class _Pass:
    connection: AsyncConnection
    scope: Scope
    run_id: str
    name: str
    applied: AppliedGraph

    def note(
        self,
        action: str,
        record: Record,
        id_: str,
        *,
        reason: str | None = None,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> None:
        change = {"action": action, "record": record, "record_id": id_, "reason": reason}
        run = {"tenant": self.scope.tenant, "run_id": self.run_id, "pass": self.name}
        self.applied.diff.append({**run, **change, "before": before, "after": after})


async def apply(
    connection: AsyncConnection, scope: Scope, run_id: str, name: str, changes: GraphChanges
) -> AppliedGraph:
    """Apply the changes of a pass, record them, and return them."""
    applied = AppliedGraph()
    pass_ = _Pass(connection, scope, run_id, name, applied)
    deleted = await _deleted(connection, scope, changes)
    for entity in changes.entities:
        if {(fold(item),) for item in (entity.draft.name, *entity.draft.aliases)} & deleted:
            applied.skipped.append({"code": RejectionCode.FORGOTTEN, "kind": "entity"})
        else:
            await _apply_entity(pass_, entity)
    for triple in changes.triples:
        if set(_words_of(triple)) & deleted:
            applied.skipped.append({"code": RejectionCode.FORGOTTEN, "kind": "triple"})
        else:
            await _apply_triple(pass_, triple)
    for expiry in changes.expiries:
        await _expire(pass_, expiry.record, expiry.id, expiry.reason)
    await queries.insert_changes(connection, applied.diff)
    await queries.save_extracted(connection, scope.tenant, changes.extracted)
    return applied


async def _deleted(connection: AsyncConnection, scope: Scope, changes: GraphChanges) -> set[tuple[str, ...]]:
    """Return what of the proposed names and triples a caller has deleted, in folded words."""
    proposed: set[tuple[str, ...]] = {
        (fold(name),) for item in changes.entities for name in (item.draft.name, *item.draft.aliases)
    }
    proposed |= {words for item in changes.triples for words in _words_of(item)}
    if not proposed:
        return set()
    return await tombstones.find_deleted(connection, scope, proposed)


def _words_of(triple: ExtractedTriple) -> list[tuple[str, ...]]:
    draft = triple.draft
    subject, object_ = fold(draft.subject), fold(draft.object or draft.literal or "")
    return [(subject,), (object_,), (subject, fold(draft.predicate), object_)]


async def _apply_entity(pass_: _Pass, extracted: ExtractedEntity) -> None:
    connection, scope = pass_.connection, pass_.scope
    before = await entity_queries.lock_named(connection, scope, extracted.draft.name)
    try:
        after = await save.upsert_entity(connection, scope, extracted.draft, derived=True)
    except errors.LimitReached:
        pass_.applied.skipped.append({"code": RejectionCode.TOO_MANY_LABELS, "kind": "entity"})
        return
    await triple_queries.add_sources(connection, scope.tenant, {"entity_id": after.id}, extracted.sources)
    if before is None:
        pass_.note(CREATED, "entity", after.id)
    elif after != before:
        pass_.note(WIDENED, "entity", after.id, before=_state(before), after=_state(after))


def _state(entity: Entity) -> dict[str, Any]:
    return entity.model_dump(mode="json", include={"aliases", "expired_at", "reason", "type"})


async def _apply_triple(pass_: _Pass, extracted: ExtractedTriple) -> None:
    connection, scope, draft = pass_.connection, pass_.scope, extracted.draft
    known = await entity_queries.resolve_names(connection, scope, [draft.subject, draft.object or ""])
    ends = await save.resolve_ends(connection, scope, draft, derived=True)
    for entity_id in set(ends.ids) - set(known.values()):
        pass_.note(CREATED, "entity", entity_id)
        record = {"entity_id": entity_id}
        await triple_queries.add_sources(connection, scope.tenant, record, extracted.sources)
    before = await _find_open(connection, scope, extracted, ends)
    after = await save.write_triple(connection, scope, draft, ends, extracted.sources, derived=True)
    if before is None:
        pass_.note(CREATED, "triple", after.id)
    elif before.confidence != after.confidence:
        old, new = {"confidence": before.confidence}, {"confidence": after.confidence}
        pass_.note(WIDENED, "triple", after.id, before=old, after=new)


async def _find_open(
    connection: AsyncConnection, scope: Scope, extracted: ExtractedTriple, ends: save.Ends
) -> Triple | None:
    draft = extracted.draft
    key = triple_queries.object_key(ends.object_id, draft.literal)
    same = await triple_queries.list_same(connection, scope, ends.subject_id, draft.predicate, key)
    return next((item for item in same if item.invalid_at is None and item.expired_at is None), None)


async def _expire(pass_: _Pass, record: Record, id_: str, reason: str) -> None:
    """Invalidate what is still as it was: whoever has changed or referenced it meanwhile wants it."""
    connection, tenant = pass_.connection, pass_.scope.tenant
    if record == "triple":
        triple = (await triple_queries.lock(connection, tenant, [id_])).get(id_)
        if triple is None or triple.expired_at is not None:
            return
        await triple_queries.invalidate(connection, tenant, id_, None, reason)
    else:
        entity = await entity_queries.get(connection, tenant, id_, lock=True)
        if entity is None or entity.expired_at is not None:
            return
        await entity_queries.expire(connection, entity, reason)
    pass_.note(INVALIDATED, record, id_, reason=reason)
