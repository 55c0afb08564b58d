"""Save entities and triples, for callers, imports and dreams.

Saving is upserting: an entity goes by its name in exactly its scope, a triple by what it says as long as it
is open. The names of a triple are resolved to ids. A name that nobody has becomes an entity of the triple's
scope; one that a user shares with the agent's common entities is the user's own, if there is one. Whoever
names an entity that was merged into another one means the other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import IntegrityError

from shared.conversation.turns import log_queries
from shared.foundation import errors, validation
from shared.foundation.origin import Origin, Trust
from shared.foundation.scope import Scope
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.memory.graph import entity_queries, merged, tombstones, triple_queries
from shared.memory.graph.entity import MAX_ALIASES, Entity, EntityDraft, EntityType, join_aliases
from shared.memory.graph.names import fold
from shared.memory.graph.triple import Triple, TripleDraft, TripleSource
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources

_MAX_ATTEMPTS = 5
_JOINED = {"type", "aliases", "metadata", "is_derived", "expired_at", "reason"}
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BUSY = "others keep writing and deleting this part of the graph"


@dataclass(frozen=True, slots=True)
class Ends:
    """The entities of a triple by id; `object_id` is None for a literal."""

    subject_id: str
    object_id: str | None

    @property
    def ids(self) -> list[str]:
        """The ids of the entities."""
        return [self.subject_id, *([self.object_id] if self.object_id else [])]


@repeated_after_deadlock
async def save_entity(
    resources: Resources, scope: Scope, draft: EntityDraft, key: IdempotencyKey | None = None
) -> dict[str, Any]:
    """Save a validated entity for a caller, and return it as JSON.

    Raises errors.LimitReached if it would have more than 64 aliases or metadata pairs.
    """
    async with resources.postgres.for_tenant(scope.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            return dict(request.stored)
        entity = await upsert_entity(tx, scope, draft)
        saved = (entity.name, draft.name, *draft.aliases)
        await tombstones.remove(tx, scope, [(name,) for name in saved])
        response = entity.to_json()
        await request.store(response, record_ids=[entity.id], user_id=scope.user_id)
    return response


async def upsert_entity(
    tx: Transaction, scope: Scope, draft: EntityDraft, *, derived: bool = False, revives: bool = True
) -> Entity:
    """Insert an entity, or add what the draft has to the one of its name: aliases and metadata.

    One that had expired is there as before if this `revives` it; one that was merged into another one stays
    so, and the draft is of that one. What is `derived` stays so until a caller names it.
    """
    for _ in range(_MAX_ATTEMPTS):
        draft, before = await merged.lock_named(tx, scope, draft)
        if before is not None:
            return await _add_to(tx, before, draft, derived=derived, revives=revives)
        columns: dict[str, Any] = {
            "type": draft.type or EntityType.TOPIC,
            "aliases": list(draft.aliases),
            "metadata": draft.metadata,
            "is_derived": derived,
        }
        if (created := await entity_queries.insert_new(tx, scope, draft.name, columns)) is not None:
            return created
    raise errors.Busy(_BUSY)


async def _add_to(
    tx: Transaction, before: Entity, draft: EntityDraft, *, derived: bool, revives: bool
) -> Entity:
    after = joined(before, draft, derived=derived, revives=revives)
    if after == before:
        return before
    return await entity_queries.replace(tx, before, {name: getattr(after, name) for name in _JOINED})


def joined(before: Entity, draft: EntityDraft, *, derived: bool, revives: bool) -> Entity:
    """Return an entity with what a draft of its name adds to it.

    Raises errors.LimitReached if it would have more than 64 aliases or metadata pairs.
    """
    aliases = list(join_aliases(before.name, [*before.aliases, *draft.aliases]))
    if len(aliases) > MAX_ALIASES:
        raise errors.LimitReached(f"an entity has at most {MAX_ALIASES} aliases; this one would have more")
    metadata = before.metadata | draft.metadata
    if len(metadata) > validation.MAX_METADATA_PAIRS:
        limit = f"an entity has at most {validation.MAX_METADATA_PAIRS} metadata pairs"
        raise errors.LimitReached(f"{limit}; this one would have more")
    columns: dict[str, Any] = {
        "type": draft.type or before.type,
        "aliases": aliases,
        "metadata": metadata,
        "is_derived": before.is_derived and derived,
    }
    if revives:
        columns |= {"expired_at": None, "reason": None}
    return before.model_copy(update=columns)


async def save_triple(
    resources: Resources,
    scope: Scope,
    draft: TripleDraft,
    origin: Origin,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Save a validated triple for a caller, and return it as JSON, with the names of its entities.

    What comes from a turn is trusted at most as far as the turn.
    """
    for _ in range(_MAX_ATTEMPTS):
        try:
            return await _save_triple(resources, scope, draft, origin, key)
        except IntegrityError:  # an entity was deleted meanwhile
            continue
    raise errors.Busy(_BUSY)


@repeated_after_deadlock
async def _save_triple(
    resources: Resources, scope: Scope, draft: TripleDraft, origin: Origin, key: IdempotencyKey | None
) -> dict[str, Any]:
    async with resources.postgres.for_tenant(scope.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            return dict(request.stored)
        ends = await resolve_ends(tx, scope, draft)
        origin = origin.limited(await _trust_of(tx, draft.source))
        triple = await write_triple(tx, scope, draft, ends, [draft.source] if draft.source else [], origin)
        await entity_queries.adopt(tx, scope, ends.ids)
        await _remove_tombstones(tx, scope, draft, ends)
        response = triple.to_json()
        await request.store(response, record_ids=[triple.id, *ends.ids], user_id=scope.user_id)
    return response


async def _trust_of(tx: Transaction, source: TripleSource | None) -> Trust | None:
    """Return how far the turn is trusted that a source names, or None."""
    if source is None or source.session_id is None or source.seq is None:
        return None
    turn_key = (source.session_id, source.seq)
    voice = (await log_queries.list_voices(tx, [turn_key])).get(turn_key)
    return None if voice is None else voice.trust


async def _remove_tombstones(tx: Transaction, scope: Scope, draft: TripleDraft, ends: Ends) -> None:
    """Remove what would keep a triple out that a caller has saved, under the names of its entities."""
    object_ = draft.object or draft.literal or ""
    entities = await entity_queries.list_by_ids(tx, ends.ids)
    given = {draft.subject: ends.subject_id} | ({object_: ends.object_id} if ends.object_id else {})
    known = {name: entities[id_].names for name, id_ in given.items()}
    words = tombstones.words_of_triple(draft.subject, draft.predicate, object_, known)
    own_names = {(names[0],) for names in known.values()}
    await tombstones.remove(tx, scope, words | own_names)


async def resolve_ends(
    tx: Transaction, scope: Scope, draft: TripleDraft, *, derived: bool = False, revives: bool = True
) -> Ends:
    """Return the entities that a triple names by id or by name, which are there until the transaction ends.

    A name that the scope does not see, or that has expired if this `revives` it, becomes an entity of this
    scope, which is extracted if it is `derived`. One that was merged into another one, perhaps while this
    waited for it, is that one. Raises errors.Invalid for the id of an entity that the scope does not see.
    """
    named = {"subject": draft.subject} | ({} if draft.object is None else {"object": draft.object})
    by_name = await entity_queries.resolve_names(tx, scope, list(named.values()))
    candidates = sorted({*named.values(), *by_name.values()})
    existing = await entity_queries.lock_shared(tx, candidates)
    visible = {id_: entity for id_, entity in existing.items() if entity.is_seen_by(scope)}
    ids: dict[str, str] = {}
    # In the order of the names: two that save the same new names the other way round wait for one another
    # once, not each for the other.
    for field, name in sorted(named.items(), key=lambda item: fold(item[1])):
        entity = visible.get(name) or visible.get(by_name.get(fold(name), ""))
        if entity is not None:
            entity = await merged.find_kept(tx, entity, shared=True) or entity
        if entity is None or (revives and entity.expired_at is not None):
            if entity is None:
                require_name(field, name)
            type_ = draft.subject_type if field == "subject" else draft.object_type
            new = EntityDraft(name=name if entity is None else entity.name, type=type_)
            entity = await upsert_entity(tx, scope, new, derived=derived)
        ids[field] = entity.id
    return Ends(ids["subject"], ids.get("object"))


def require_name(field: str, name: str) -> None:
    """Raise errors.Invalid for what looks like the id of an entity, and is that of none."""
    if _ID.fullmatch(name):
        raise errors.Invalid(field, "must be a name, or the id of an entity that is there")


async def write_triple(
    tx: Transaction,
    scope: Scope,
    draft: TripleDraft,
    ends: Ends,
    sources: Sequence[TripleSource],
    origin: Origin,
    *,
    derived: bool = False,
) -> Triple:
    """Insert a triple between resolved entities, or confirm the one that says the same, and return it.

    One that is not open is the same if both of its times of the world are.
    """
    triple_id = await _find_closed(tx, scope, draft, ends)
    if triple_id is None:
        more = {"is_derived": derived}
        triple_id, _ = await triple_queries.upsert(
            tx, scope, draft, ends.subject_id, ends.object_id, origin, more
        )
    await triple_queries.add_sources(tx, {"triple_id": triple_id}, sources)
    (triple,) = await triple_queries.list_by_ids(tx, [triple_id])
    return triple


async def _find_closed(tx: Transaction, scope: Scope, draft: TripleDraft, ends: Ends) -> str | None:
    if draft.invalid_at is None:
        return None
    key = triple_queries.object_key(ends.object_id, draft.literal)
    same = await triple_queries.list_same(tx, scope, ends.subject_id, draft.predicate, key)
    times = (draft.valid_at, draft.invalid_at)
    return next((triple.id for triple in same if (triple.valid_at, triple.invalid_at) == times), None)
