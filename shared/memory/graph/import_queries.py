"""The statements that write many entities and triples at once, for imports.

Each takes all rows of a batch and sorts them by what they are unique by, so that two imports of the same
lines wait for each other and never in a circle. Functions take the caller's transaction and never commit.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import orjson
from sqlalchemy import ARRAY, Text, bindparam, select, text

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.graph.entity import Entity
from shared.memory.graph.names import fold, key_of
from shared.memory.graph.table import graph_entity, graph_triple

SameKey = tuple[str, str, str]
"""What a triple says: the id of its subject, its predicate, and the key of its object."""
Times = tuple[datetime | None, datetime | None, datetime | None]
"""What tells triples that say the same apart: `valid_at`, `invalid_at`, `expired_at`."""


async def lock_named(tx: Transaction, scope: Scope, folded_names: Iterable[str]) -> dict[str, Entity]:
    """Lock the entities of exactly this scope with these names, expired or not; return them by folded name.

    Whoever writes a triple of one of them does not wait for it.
    """
    where = (exact_scope(graph_entity, scope), is_any_of(graph_entity.c.folded_name, folded_names))
    statement = select(graph_entity).where(*where).order_by(graph_entity.c.id).with_for_update(key_share=True)
    rows = (await tx.execute(statement)).mappings()
    return {row["folded_name"]: Entity.from_row(row) for row in rows}


async def list_ids_named(tx: Transaction, scope: Scope, folded_names: Collection[str]) -> dict[str, str]:
    """Return the ids of the entities of exactly this scope with these names, expired or not, by folded name.

    An alias is no such name.
    """
    if not folded_names:
        return {}
    where = (exact_scope(graph_entity, scope), is_any_of(graph_entity.c.folded_name, folded_names))
    rows = await tx.execute(select(graph_entity.c.folded_name, graph_entity.c.id).where(*where))
    return {row.folded_name: row.id for row in rows}


async def list_used_ids(tx: Transaction, record: Literal["entity", "triple"], ids: Iterable[str]) -> set[str]:
    """Return those of these ids that entities, or triples, of any scope have."""
    table = graph_entity if record == "entity" else graph_triple
    statement = select(table.c.id).where(tenant_filter(table, tx.tenant), is_any_of(table.c.id, ids))
    return set((await tx.scalars(statement)).all())


_INSERT_ENTITIES = text(
    """
    INSERT INTO graph_entity (tenant, id, agent_id, user_id, name, folded_name, type, aliases, metadata,
                              is_derived, is_kept, created_at, updated_at, last_referenced_at, expired_at,
                              reason)
    SELECT :tenant, r.id, :agent_id, CAST(:user_id AS text), r.name, r.folded_name, r.type, r.aliases,
           r.metadata, r.is_derived, r.is_kept, coalesce(r.created_at, now()), r.updated_at,
           r.last_referenced_at, r.expired_at, r.reason
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
        id text, name text, folded_name text, type text, aliases text[], metadata jsonb, is_derived boolean,
        is_kept boolean, created_at timestamptz, updated_at timestamptz, last_referenced_at timestamptz,
        expired_at timestamptz, reason text)
    ORDER BY r.folded_name
    ON CONFLICT DO NOTHING
    RETURNING *
    """
)


async def insert_entities(tx: Transaction, scope: Scope, rows: Sequence[Mapping[str, Any]]) -> list[Entity]:
    """Insert entities with their names, and return those that were not there: nobody else has their names."""
    if not rows:
        return []
    folded = [{**row, "folded_name": fold(row["name"])} for row in rows]
    inserted = await tx.fetch(_INSERT_ENTITIES, prepared.scope_values(scope) | {"rows": _encode(folded)})
    entities = [Entity.from_row(row) for row in inserted]
    await _insert_names(tx, scope, entities)
    return entities


_UPDATE_ENTITIES = text(
    """
    UPDATE graph_entity e
    SET updated_at = now(), type = r.type, aliases = r.aliases, metadata = r.metadata,
        is_derived = r.is_derived, expired_at = r.expired_at, reason = r.reason
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
        id text, type text, aliases text[], metadata jsonb, is_derived boolean, expired_at timestamptz,
        reason text)
    WHERE e.tenant = :tenant AND e.id = r.id
    """
)
_DELETE_NAMES = text("DELETE FROM graph_name WHERE tenant = :tenant AND entity_id = ANY (:ids)").bindparams(
    bindparam("ids", type_=ARRAY(Text))
)


async def update_entities(tx: Transaction, scope: Scope, entities: Sequence[Entity]) -> None:
    """Write locked entities of this scope as they are to be, with their names."""
    if not entities:
        return
    rows = [entity.model_dump(mode="json") | {"is_derived": entity.is_derived} for entity in entities]
    await tx.fetch(_UPDATE_ENTITIES, {"tenant": scope.tenant, "rows": _encode(rows)})
    ids = [entity.id for entity in entities]
    await tx.fetch(_DELETE_NAMES, {"tenant": scope.tenant, "ids": ids})
    await _insert_names(tx, scope, entities)


_INSERT_NAMES = text(
    """
    INSERT INTO graph_name (tenant, entity_id, folded, key, agent_id, user_id)
    SELECT :tenant, r.entity_id, r.folded, r.key, :agent_id, CAST(:user_id AS text)
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (entity_id text, folded text, key text)
    """
)


async def _insert_names(tx: Transaction, scope: Scope, entities: Sequence[Entity]) -> None:
    rows = [
        {"entity_id": entity.id, "folded": folded, "key": key_of(folded)}
        for entity in entities
        for folded in dict.fromkeys(fold(name) for name in entity.names)
    ]
    if rows:
        values = prepared.scope_values(scope) | {"rows": _encode(rows)}
        await tx.fetch(_INSERT_NAMES, values)


# Each half has an index of its own: one entity may have any number of triples.
_SAME = text(
    """
    SELECT k.subject_id, k.predicate, k.object_key, t.valid_at, t.invalid_at, t.expired_at
    FROM unnest(:subject_ids, :predicates, :object_keys) AS k (subject_id, predicate, object_key)
    CROSS JOIN LATERAL (
        SELECT o.valid_at, o.invalid_at, o.expired_at FROM graph_triple o
        WHERE o.tenant = :tenant AND o.subject_id = k.subject_id AND o.predicate = k.predicate
            AND o.object_key = k.object_key AND o.agent_id = :agent_id
            AND o.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
            AND o.invalid_at IS NULL AND o.expired_at IS NULL
        UNION ALL
        SELECT c.valid_at, c.invalid_at, c.expired_at FROM graph_triple c
        WHERE c.tenant = :tenant AND c.subject_id = k.subject_id AND c.predicate = k.predicate
            AND c.object_key = k.object_key AND c.agent_id = :agent_id
            AND c.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
            AND NOT (c.invalid_at IS NULL AND c.expired_at IS NULL)
    ) AS t
    """
).bindparams(
    bindparam("subject_ids", type_=ARRAY(Text)),
    bindparam("predicates", type_=ARRAY(Text)),
    bindparam("object_keys", type_=ARRAY(Text)),
)


async def list_times(tx: Transaction, scope: Scope, keys: Iterable[SameKey]) -> dict[SameKey, list[Times]]:
    """Return when triples of exactly this scope hold that say one of these, by what they say."""
    wanted = sorted(set(keys))
    columns = ("subject_ids", "predicates", "object_keys")
    values = {name: [key[position] for key in wanted] for position, name in enumerate(columns)}
    rows = await tx.fetch(_SAME, prepared.scope_values(scope) | values)
    times: dict[SameKey, list[Times]] = {key: [] for key in wanted}
    for row in rows:
        key = (row["subject_id"], row["predicate"], row["object_key"])
        times[key].append((row["valid_at"], row["invalid_at"], row["expired_at"]))
    return times


_INSERT_TRIPLES = text(
    """
    INSERT INTO graph_triple (tenant, id, agent_id, user_id, subject_id, predicate, object_id, literal,
                              object_key, fact, confidence, valid_at, invalid_at, created_at, expired_at,
                              reason, previous_invalid_at, is_derived, is_kept,
                              origin_channel, origin_trust, origin_key)
    SELECT :tenant, r.id, :agent_id, CAST(:user_id AS text), r.subject_id, r.predicate, r.object_id,
           r.literal, r.object_key, r.fact, r.confidence, r.valid_at, r.invalid_at, r.created_at,
           r.expired_at, r.reason, r.previous_invalid_at, r.is_derived, r.is_kept,
           r.origin_channel, r.origin_trust, r.origin_key
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
        id text, subject_id text, predicate text, object_id text, literal text, object_key text, fact text,
        confidence float8, valid_at timestamptz, invalid_at timestamptz, created_at timestamptz,
        expired_at timestamptz, reason text, previous_invalid_at timestamptz, is_derived boolean,
        is_kept boolean, origin_channel text, origin_trust text, origin_key text)
    ORDER BY r.subject_id, r.predicate, r.object_key, r.id
    ON CONFLICT DO NOTHING
    RETURNING id
    """
)


async def insert_triples(tx: Transaction, scope: Scope, rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Insert triples between entities that are there, and return the ids of those that nobody else has."""
    if not rows:
        return set()
    values = prepared.scope_values(scope) | {"rows": _encode(rows)}
    return {row["id"] for row in await tx.fetch(_INSERT_TRIPLES, values)}


_INSERT_SOURCES = text(
    """
    INSERT INTO graph_source (tenant, triple_id, session_id, seq, memory_id)
    SELECT :tenant, r.triple_id, r.session_id, r.seq, r.memory_id
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
        triple_id text, session_id text, seq integer, memory_id text)
    ON CONFLICT DO NOTHING
    """
)


async def insert_sources(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Note where triples come from, given as {triple_id, session_id, seq, memory_id}."""
    if rows:
        await tx.fetch(_INSERT_SOURCES, {"tenant": tx.tenant, "rows": _encode(rows)})


def _encode(rows: Sequence[Mapping[str, Any]]) -> str:
    return orjson.dumps([dict(row) for row in rows]).decode()
