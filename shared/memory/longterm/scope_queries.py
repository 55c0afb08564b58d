"""What categories and tags there are, with counts (LT15)."""

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Text, and_, any_, bindparam, func, insert, literal, not_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.infra.postgres import tenant_filter
from shared.memory.longterm import index_document, queries
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.fingerprint import fingerprint
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import memory
from shared.platform.resources import Resources
from shared.search.text import tsvector


async def count_categories(resources: Resources, scope: Scope) -> list[dict[str, Any]]:
    """Return {category, count, total} sorted; `total` counts what lies beneath it too.

    Every step of the path is listed, so the rows read as a tree by `/`.
    """
    statement = (
        select(memory.c.category, func.count().label("entries"))
        .where(*MemoryFilters().to_sql(scope), memory.c.category.is_not(None))
        .group_by(memory.c.category)
    )
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        counts = {row.category: row.entries for row in await connection.execute(statement)}
    totals: dict[str, int] = {}
    for category, count in counts.items():
        parts = category.split("/")
        for end in range(1, len(parts) + 1):
            step = "/".join(parts[:end])
            totals[step] = totals.get(step, 0) + count
    return [
        {"category": name, "count": counts.get(name, 0), "total": totals[name]} for name in sorted(totals)
    ]


async def count_tags(resources: Resources, scope: Scope) -> list[dict[str, Any]]:
    """Return {tag, count} sorted by tag."""
    each = select(func.unnest(memory.c.tags).label("tag")).where(*MemoryFilters().to_sql(scope)).subquery()
    statement = select(each.c.tag, func.count().label("entries")).group_by(each.c.tag).order_by(each.c.tag)
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        return [{"tag": row.tag, "count": row.entries} for row in await connection.execute(statement)]


MAX_MEMORIES = 20_000
"""What a pass holds in memory at once; of more, those that changed last."""


async def fingerprint_of(connection: AsyncConnection, one: Memory) -> bytes:
    """Return the fingerprint of an entry."""
    mine = (tenant_filter(memory, one.tenant), memory.c.id == one.id)
    return bytes((await connection.scalars(select(memory.c.fingerprint).where(*mine))).one())


async def list_scope(connection: AsyncConnection, scope: Scope, limit: int = MAX_MEMORIES) -> list[Memory]:
    """Return the live entries of exactly this scope, the last changed first, at most `limit`."""
    changed = func.coalesce(memory.c.updated_at, memory.c.created_at)
    statement = select(memory).where(*queries.exact_scope(scope), memory.c.archived_at.is_(None))
    return await queries.select_entries(
        connection, statement.order_by(changed.desc(), memory.c.id).limit(limit)
    )


def _held_by(scope: Scope) -> ColumnElement[bool]:
    return and_(memory.c.agent_id == scope.agent_id, memory.c.user_id.is_not_distinct_from(scope.user_id))


async def page(connection: AsyncConnection, scope: Scope, after: str, limit: int) -> list[Memory]:
    """Return entries of a scope, archived ones too, by id from `after` on."""
    beyond = (tenant_filter(memory, scope.tenant), _held_by(scope), memory.c.id > after)
    return await queries.select_entries(
        connection, select(memory).where(*beyond).order_by(memory.c.id).limit(limit)
    )


async def ids_in_other_scopes(connection: AsyncConnection, scope: Scope, ids: Collection[str]) -> set[str]:
    """Return which of these ids other scopes of the tenant have taken."""
    # One array: there may be more ids than a statement can have parameters.
    named = memory.c.id == any_(literal(list(ids), ARRAY(Text)))
    statement = select(memory.c.id).where(tenant_filter(memory, scope.tenant), named, not_(_held_by(scope)))
    return set((await connection.scalars(statement)).all())


async def ids_by_fingerprint(
    connection: AsyncConnection, scope: Scope, fingerprints: Collection[bytes]
) -> dict[bytes, str]:
    """Return which live entry of a scope says each of these facts."""
    live = (memory.c.archived_at.is_(None), memory.c.fingerprint.in_(fingerprints))
    statement = select(memory.c.fingerprint, memory.c.id).where(
        tenant_filter(memory, scope.tenant), _held_by(scope), *live
    )
    return {bytes(row.fingerprint): row.id for row in await connection.execute(statement)}


_INSERT = (
    insert(memory)
    .values(search_terms=func.array_to_tsvector(bindparam("terms", type_=ARRAY(Text))))
    .returning(memory.c.id)
)


async def add(connection: AsyncConnection, entries: Sequence[Memory]) -> None:
    """Insert entries as they are, ids and times included; IntegrityError when an id or a fact is taken."""
    # Sorted as saves sort theirs, so that the two can't wait for each other.
    rows = sorted((columns(one) for one in entries), key=itemgetter("fingerprint"))
    if rows:
        await connection.execute(_INSERT, rows)


async def replace(connection: AsyncConnection, after: Memory) -> None:
    """Make an entry what it shall be."""
    values = columns(after)
    search_terms = func.array_to_tsvector(literal(values.pop("terms"), ARRAY(Text)))
    await queries.update_columns(connection, after.tenant, after.id, values | {"search_terms": search_terms})


def columns(one: Memory) -> dict[str, Any]:
    """Return an entry's columns; its indexed words, not yet a tsvector, are `terms`."""
    hidden = {"tenant": one.tenant, "version": one.version, "content_version": one.content_version}
    found = {
        "state": one.state.value,
        "fingerprint": fingerprint(one.content, one.occurred_at),
        "terms": tsvector.terms_of(index_document.keywords(one)),
    }
    return one.model_dump(exclude={"source", "effective_importance"}) | hidden | found
