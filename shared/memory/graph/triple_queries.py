"""Every statement on triples and what they come from. Functions take the caller's transaction."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import uuid_utils
from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    case,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, insert

from shared.foundation.origin import Origin, Trust
from shared.foundation.scope import Scope
from shared.infra import origin_columns
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter, visible_scope
from shared.infra.transaction import Transaction
from shared.memory.graph.entity import MERGED
from shared.memory.graph.names import fold
from shared.memory.graph.table import IS_OPEN, graph_entity, graph_source, graph_triple
from shared.memory.graph.triple import Triple, TripleDraft, TripleSource

_subject = graph_entity.alias("subject_entity")
_object = graph_entity.alias("object_entity")
_source_item = func.jsonb_build_object(
    "session_id", graph_source.c.session_id, "seq", graph_source.c.seq, "memory_id", graph_source.c.memory_id
)
_sources = (
    select(func.jsonb_agg(aggregate_order_by(_source_item, graph_source.c.id)))
    .where(graph_source.c.tenant == graph_triple.c.tenant, graph_source.c.triple_id == graph_triple.c.id)
    .scalar_subquery()
)
_READ_COLUMNS = [
    *(graph_triple.c[name] for name in ("tenant", "id", "agent_id", "user_id", "subject_id", "predicate")),
    *(graph_triple.c[name] for name in ("object_id", "fact", "confidence", "valid_at", "invalid_at")),
    *(graph_triple.c[name] for name in ("created_at", "expired_at", "reason", "is_derived")),
    graph_triple.c.is_kept,
    *(graph_triple.c[name] for name in sorted(origin_columns.NAMES)),
    graph_triple.c.previous_invalid_at,
    _subject.c.type.label("subject_type"),
    _object.c.type.label("object_type"),
    _subject.c.name.label("subject"),
    func.coalesce(_object.c.name, graph_triple.c.literal).label("object"),
    func.coalesce(_sources, literal_column("'[]'::jsonb")).label("sources"),
]
_FROM = graph_triple.join(
    _subject, and_(_subject.c.tenant == graph_triple.c.tenant, _subject.c.id == graph_triple.c.subject_id)
).outerjoin(
    _object, and_(_object.c.tenant == graph_triple.c.tenant, _object.c.id == graph_triple.c.object_id)
)


def object_key(object_id: str | None, literal: str | None) -> str:
    """Return by what the object of a triple is compared: an id, or a digest of the literal's words."""
    return object_id or "=" + hashlib.sha256(fold(literal or "").encode()).hexdigest()


async def get(tx: Transaction, triple_id: str) -> Triple | None:
    """Return a triple, or None."""
    where = (tenant_filter(graph_triple, tx.tenant), graph_triple.c.id == triple_id)
    found = await _select(tx, *where)
    return found[0] if found else None


async def lock(tx: Transaction, ids: Sequence[str]) -> dict[str, Triple]:
    """Lock those of these triples that exist, in the order of their ids, and return them by id."""
    where = (tenant_filter(graph_triple, tx.tenant), is_any_of(graph_triple.c.id, ids))
    statement = select(graph_triple.c.id).where(*where).order_by(graph_triple.c.id).with_for_update()
    locked = list((await tx.scalars(statement)).all())
    return {triple.id: triple for triple in await list_by_ids(tx, locked)}


async def lock_of_entities(tx: Transaction, entity_ids: Sequence[str]) -> list[str]:
    """Lock the triples of these entities, by id, and return their ids."""
    columns = graph_triple.c
    named = or_(is_any_of(columns.subject_id, entity_ids), is_any_of(columns.object_id, entity_ids))
    return await _lock_ids(tx, named)


async def lock_of(tx: Transaction, *, session_ids: Sequence[str] = (), **owner: str) -> list[str]:
    """Lock the triples that come from these sessions, and those of an owner, by id; return their ids.

    An owner is `user_id`, of all agents, or `agent_id`, of all users.
    """
    named = and_(*(graph_triple.c[name] == value for name, value in owner.items())) if owner else false()
    in_sessions = (tenant_filter(graph_source, tx.tenant), is_any_of(graph_source.c.session_id, session_ids))
    from_sessions = select(graph_source.c.triple_id).where(*in_sessions)
    return await _lock_ids(tx, or_(named, graph_triple.c.id.in_(from_sessions)))


async def lock_expired_before(tx: Transaction, moment: datetime, limit: int) -> list[str]:
    """Lock triples that were invalidated before a time, and return their ids."""
    where = (tenant_filter(graph_triple, tx.tenant), graph_triple.c.expired_at < moment)
    statement = select(graph_triple.c.id).where(*where).order_by(graph_triple.c.id).limit(limit)
    return list((await tx.scalars(statement.with_for_update(skip_locked=True))).all())


async def _lock_ids(tx: Transaction, condition: ColumnElement[bool]) -> list[str]:
    statement = select(graph_triple.c.id).where(tenant_filter(graph_triple, tx.tenant), condition)
    ordered = statement.order_by(graph_triple.c.id).with_for_update()
    return list((await tx.scalars(ordered)).all())


async def lock_existing(tx: Transaction, ids: Sequence[str]) -> set[str]:
    """Return which of these triples exist, and keep those from being deleted until the transaction ends."""
    where = (tenant_filter(graph_triple, tx.tenant), is_any_of(graph_triple.c.id, ids))
    statement = select(graph_triple.c.id).where(*where).order_by(graph_triple.c.id)
    return set((await tx.scalars(statement.with_for_update(read=True))).all())


async def lock_moved(
    tx: Transaction, triple: Triple, subject_ids: Sequence[str], object_ids: Sequence[str]
) -> list[Triple]:
    """Lock and return the triples that said the same of these entities before they were merged."""
    columns = graph_triple.c
    keys = object_ids if triple.object_id is not None else [object_key(None, triple.object)]
    is_moved = (columns.expired_at.is_not(None), columns.reason == MERGED)
    same = (is_any_of(columns.subject_id, subject_ids), columns.predicate == triple.predicate)
    where = (exact_scope(graph_triple, triple.scope), *is_moved, *same, is_any_of(columns.object_key, keys))
    ids = (await tx.scalars(select(columns.id).where(*where))).all()
    locked = await lock(tx, ids) if ids else {}
    return [moved for moved in locked.values() if moved.expired_at is not None]


async def list_by_ids(tx: Transaction, ids: Sequence[str]) -> list[Triple]:
    """Return those of these triples that exist, by id."""
    return await _select(tx, tenant_filter(graph_triple, tx.tenant), is_any_of(graph_triple.c.id, ids))


async def list_page(
    tx: Transaction, scope: Scope, filters: Mapping[str, Any], limit: int, after: str
) -> list[Triple]:
    """Return triples that a scope sees, oldest first, from the id `after` on.

    `filters` are `entity_id`, which is the subject or the object, `predicate`, `as_of` (a time at which they
    hold; now without it), and `any`: whether they are meant whenever they hold.
    """
    conditions = [visible_scope(graph_triple, scope), graph_triple.c.id > after]
    if not filters.get("any"):
        conditions.append(_holds_at(filters.get("as_of")))
    if (entity_id := filters.get("entity_id")) is not None:
        conditions.append(or_(graph_triple.c.subject_id == entity_id, graph_triple.c.object_id == entity_id))
    if (predicate := filters.get("predicate")) is not None:
        conditions.append(graph_triple.c.predicate == predicate)
    return await _select(tx, *conditions, limit=limit)


def _holds_at(as_of: datetime | None) -> ColumnElement[bool]:
    moment: Any = func.now() if as_of is None else as_of
    columns = graph_triple.c
    return and_(
        or_(columns.valid_at.is_(None), columns.valid_at <= moment),
        or_(columns.invalid_at.is_(None), columns.invalid_at > moment),
        or_(columns.expired_at.is_(None), columns.expired_at > moment),
    )


async def list_scope_page(
    tx: Transaction, scope: Scope, after: str, limit: int, *, live: bool = False
) -> list[Triple]:
    """Return the triples of exactly this scope by id, from the id `after` on; all, or the live ones."""
    conditions = [exact_scope(graph_triple, scope), graph_triple.c.id > after]
    if live:
        conditions.append(graph_triple.c.expired_at.is_(None))
    return await _select(tx, *conditions, limit=limit)


async def list_same(tx: Transaction, scope: Scope, subject_id: str, predicate: str, key: str) -> list[Triple]:
    """Return the triples of exactly this scope that say the same, whenever it was so."""
    columns = graph_triple.c
    same = (columns.subject_id == subject_id, columns.predicate == predicate, columns.object_key == key)
    return await _select(tx, exact_scope(graph_triple, scope), *same)


async def has_open_double(tx: Transaction, triple: Triple) -> bool:
    """Return whether another triple of the scope says the same and is open."""
    columns = graph_triple.c
    key = object_key(triple.object_id, triple.object)
    same = (columns.subject_id == triple.subject_id, columns.predicate == triple.predicate)
    where = (exact_scope(graph_triple, triple.scope), *same, columns.object_key == key, IS_OPEN)
    statement = select(columns.id).where(*where, columns.id != triple.id).limit(1)
    return await tx.scalar(statement) is not None


async def _select(
    tx: Transaction, *conditions: ColumnElement[bool], limit: int | None = None
) -> list[Triple]:
    statement = select(*_READ_COLUMNS).select_from(_FROM).where(*conditions)
    rows = await tx.execute(statement.order_by(graph_triple.c.id).limit(limit))
    return [Triple.from_row(row) for row in rows.mappings()]


async def upsert(
    tx: Transaction,
    scope: Scope,
    draft: TripleDraft,
    subject_id: str,
    object_id: str | None,
    origin: Origin,
    more: Mapping[str, Any],
) -> tuple[str, bool]:
    """Insert a triple, or confirm the open one that says the same; return its id and whether it is new.

    The open one keeps the higher confidence, the earlier beginning, and its fact unless somebody who is as
    trusted gives another. A caller who is more trusted, and repeats or gives its fact, vouches for it.
    """
    row = {
        "tenant": scope.tenant,
        "id": str(uuid_utils.uuid7()),
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "subject_id": subject_id,
        "object_id": object_id,
        "object_key": object_key(object_id, draft.literal),
        **draft.model_dump(include={"predicate", "literal", "fact", "confidence", "valid_at", "invalid_at"}),
        **origin.columns(),
        **more,
    }
    new = insert(graph_triple).values(row)
    columns, proposed = graph_triple.c, new.excluded
    earlier = func.least(columns.valid_at, proposed.valid_at)
    confirmed = {
        "confidence": func.greatest(columns.confidence, proposed.confidence),
        "fact": case(
            (_rank(proposed) >= _rank(columns), func.coalesce(proposed.fact, columns.fact)),
            else_=columns.fact,
        ),
        "valid_at": case((columns.valid_at.is_(None), proposed.valid_at), else_=earlier),
        "is_derived": and_(columns.is_derived, proposed.is_derived),
    }
    vouches = and_(
        _rank(proposed) > _rank(columns),
        ~proposed.is_derived,
        or_(columns.fact.is_(None), proposed.fact.is_not(None)),
    )
    confirmed |= {name: case((vouches, proposed[name]), else_=columns[name]) for name in origin_columns.NAMES}
    target = [columns[name] for name in ("tenant", "subject_id", "predicate", "object_key")]
    target += [columns.agent_id, columns.user_id]
    statement = new.on_conflict_do_update(index_elements=target, index_where=IS_OPEN, set_=confirmed)
    written = (await tx.execute(statement.returning(columns.id))).scalar_one()
    return written, written == row["id"]


def _rank(columns: Any) -> ColumnElement[int]:
    return func.array_position(literal([trust.value for trust in Trust], ARRAY(Text)), columns.origin_trust)


async def add_sources(
    tx: Transaction, record: Mapping[str, str], sources: Sequence[TripleSource]
) -> list[TripleSource]:
    """Note where a record comes from: `record` is its `triple_id` or its `entity_id`. Return what is new."""
    rows = [{"tenant": tx.tenant, **record, **source.model_dump()} for source in sources]
    if not rows:
        return []
    columns = [graph_source.c[name] for name in TripleSource.model_fields]
    statement = insert(graph_source).values(rows).on_conflict_do_nothing().returning(*columns)
    added = (await tx.execute(statement)).mappings()
    return [TripleSource.model_validate({**row}) for row in added]


async def update_columns(tx: Transaction, triple_id: str, columns: Mapping[str, Any]) -> None:
    """Change columns of a locked triple. Raises IntegrityError if it would be open beside another one."""
    where = (tenant_filter(graph_triple, tx.tenant), graph_triple.c.id == triple_id)
    await tx.execute(update(graph_triple).where(*where).values(dict(columns)))


async def invalidate(tx: Transaction, triple_id: str, invalid_at: datetime | None, reason: str) -> None:
    """Invalidate a locked triple, from a time of the world on; None is now, or when it had ended already."""
    columns = graph_triple.c
    ended: Any = func.least(columns.invalid_at, func.now()) if invalid_at is None else invalid_at
    ended = func.greatest(ended, columns.valid_at)
    times = {"expired_at": func.now(), "invalid_at": ended, "previous_invalid_at": columns.invalid_at}
    await update_columns(tx, triple_id, {**times, "reason": reason})


async def restore(tx: Transaction, triple_id: str, *, keep: bool = True) -> None:
    """Let an invalidated, locked triple hold as it did, and `keep` it from dreams.

    Raises IntegrityError as `update_columns` does.
    """
    times = {"expired_at": None, "invalid_at": graph_triple.c.previous_invalid_at}
    more = {"previous_invalid_at": None, "reason": None, **({"is_kept": True} if keep else {})}
    await update_columns(tx, triple_id, times | more)


async def expire(tx: Transaction, triple_id: str, reason: str) -> None:
    """Invalidate a locked triple whose words go on elsewhere: since when the world was so does not change."""
    times = {"expired_at": func.now(), "previous_invalid_at": graph_triple.c.invalid_at}
    await update_columns(tx, triple_id, {**times, "reason": reason})
