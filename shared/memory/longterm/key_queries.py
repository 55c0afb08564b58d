"""Every statement on memories by their key. Functions use the caller's transaction and never commit.

A key is unique in its namespace among the live memories of exactly one scope.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Text, bindparam, collate, func, select, text

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope
from shared.infra.transaction import Transaction
from shared.memory.longterm import queries
from shared.memory.longterm.memory import Memory, Name
from shared.memory.longterm.table import IS_UNEXPIRED, memory

ANY_SEGMENT = "*"
"""In a prefix or suffix of namespaces it stands for one segment, whatever it is."""

_IS_NAMED = "(namespace, key) IN (SELECT * FROM unnest(:namespaces, :keys))"
_NAMES = (bindparam("namespaces", type_=ARRAY(Text)), bindparam("keys", type_=ARRAY(Text)))
_INSERT = text(
    f"""
    {queries.INSERT_ROWS}
    ON CONFLICT (tenant, agent_id, user_id, namespace, key) WHERE archived_at IS NULL AND key IS NOT NULL
    DO NOTHING
    RETURNING memory.*
    """
)
_LOCK = text(
    f"""
    SELECT * FROM memory
    WHERE tenant = :tenant AND agent_id = :agent_id AND user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
      AND archived_at IS NULL AND {_IS_NAMED}
    ORDER BY namespace, key FOR UPDATE
    """  # noqa: S608  (constants only)
).bindparams(*_NAMES)
# What a save does not say becomes what it is for a new memory; only the id and the creation stay.
_REPLACE = text(
    f"""
    UPDATE memory SET
        content = r.content, category = r.category, tags = r.tags, metadata = r.metadata,
        importance = r.importance, state = r.state, failure_reason = NULL, occurred_at = r.occurred_at,
        valid_from = r.valid_from, valid_until = r.valid_until, expires_at = r.expires_at,
        sources = r.sources, saved_without_source = r.saved_without_source,
        origin_channel = r.origin_channel, origin_trust = r.origin_trust, origin_key = r.origin_key,
        derived_from = r.derived_from, superseded_by = '{{}}',
        decided_by = r.decided_by, verdict = r.verdict, judge_model = r.judge_model,
        fingerprint = r.fingerprint, search_terms = array_to_tsvector(r.search_terms),
        version = memory.version + 1, updated_at = now(), last_seen_at = now(),
        content_version = memory.content_version
            + ((memory.content, memory.category) IS DISTINCT FROM (r.content, r.category))::int
    FROM {queries.ROWS}
    WHERE memory.tenant = :tenant AND memory.id = r.id
    RETURNING memory.*
    """  # noqa: S608  (constants only)
)
_SET_ASIDE = text(f"{queries.SET_ASIDE} AND {_IS_NAMED}").bindparams(*_NAMES)


async def insert_missing(tx: Transaction, scope: Scope, rows: Sequence[Mapping[str, Any]]) -> list[Memory]:
    """Insert those of these rows whose key no live memory has; return the new memories."""
    inserted = await tx.fetch(_INSERT, queries.insert_values(scope, rows))
    return [Memory.from_row(row) for row in inserted]


async def lock(tx: Transaction, scope: Scope, names: Sequence[Name]) -> list[Memory]:
    """Return the live memories with these names, locked until the transaction ends."""
    rows = await tx.fetch(_LOCK, prepared.scope_values(scope) | _name_values(names))
    return [Memory.from_row(row) for row in rows]


async def replace(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> list[Memory]:
    """Replace the locked memories with the ids of these rows by what the rows say; return them."""
    values = {"tenant": tx.tenant, "rows": queries.encode_rows(rows)}
    return [Memory.from_row(row) for row in await tx.fetch(_REPLACE, values)]


async def set_aside_expired(tx: Transaction, scope: Scope, names: Sequence[Name]) -> None:
    """Archive the expired memories with these names, so that the names are free."""
    await tx.fetch(_SET_ASIDE, prepared.scope_values(scope) | _name_values(names))


def _name_values(names: Sequence[Name]) -> dict[str, list[str]]:
    return {"namespaces": [namespace for namespace, _ in names], "keys": [key for _, key in names]}


async def get(tx: Transaction, scope: Scope, name: Name) -> Memory | None:
    """Return the live memory of exactly this scope with this name, or None."""
    namespace, key = name
    is_named = (memory.c.namespace == namespace, memory.c.key == key, memory.c.archived_at.is_(None))
    statement = select(memory).where(exact_scope(memory, scope), *is_named, IS_UNEXPIRED)
    return next(iter(await queries.select_memories(tx, statement)), None)


async def list_namespaces(
    tx: Transaction,
    scope: Scope,
    prefix: Sequence[str],
    suffix: Sequence[str],
    max_depth: int | None,
    after: str | None,
    limit: int,
) -> list[tuple[str, int]]:
    """Return (namespace, live memories in it) of exactly this scope, sorted, from those after `after`.

    Prefix and suffix are whole segments. Namespaces deeper than `max_depth` count as their first segments.
    """
    segments = func.string_to_array(memory.c.namespace, "/", type_=ARRAY(Text))
    shortened = func.array_to_string(segments[1:max_depth], "/") if max_depth else memory.c.namespace
    names = (
        select(shortened.label("namespace"), func.count().label("memories"))
        .where(exact_scope(memory, scope), memory.c.archived_at.is_(None), IS_UNEXPIRED)
        .where(memory.c.key.is_not(None), *_matches(segments, prefix, suffix))
        .group_by(shortened)
        .subquery()
    )
    # Sorted by bytes, so that the order is that of no database's language.
    name = collate(names.c.namespace, "C")
    statement = select(names).order_by(name).limit(limit)
    rows = await tx.execute(statement if after is None else statement.where(name > after))
    return [(row.namespace, row.memories) for row in rows]


def _matches(segments: Any, prefix: Sequence[str], suffix: Sequence[str]) -> list[ColumnElement[bool]]:
    depth = func.cardinality(segments)
    conditions: list[ColumnElement[bool]] = [depth >= max(len(prefix), len(suffix))]
    for position, segment in enumerate(prefix, start=1):
        if segment != ANY_SEGMENT:
            conditions.append(segments[position] == segment)
    for distance, segment in enumerate(reversed(suffix)):
        if segment != ANY_SEGMENT:
            conditions.append(segments[depth - distance] == segment)
    return conditions
