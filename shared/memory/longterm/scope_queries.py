"""Statements on all memories of one scope: counts, lists, and what an import looks up and writes.

Counts of categories and tags are for readers, so they show what the scope sees. All other functions
concern exactly one scope: one user's memories, or those of no user.
"""

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Text, bindparam, cast, func, insert, literal, not_, select

from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.longterm import new_rows, queries
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import IS_DEDUPLICATED, IS_UNEXPIRED, READ_COLUMNS
from shared.memory.longterm.table import memory as memory_table

MAX_MEMORIES = 20_000
"""How many memories a dream pass loads at most."""


async def count_categories(tx: Transaction, scope: Scope) -> list[dict[str, Any]]:
    """Return {category, count, total}, sorted by category. `total` includes the categories below it.

    Every step of a path is listed, so the rows form a complete tree.
    """
    statement = (
        select(memory_table.c.category, func.count().label("memories"))
        .where(*MemoryFilters().to_sql(scope), memory_table.c.category.is_not(None))
        .group_by(memory_table.c.category)
    )
    counts = {row.category: row.memories for row in await tx.execute(statement)}
    totals: dict[str, int] = {}
    for category, count in counts.items():
        parts = category.split("/")
        for end in range(1, len(parts) + 1):
            step = "/".join(parts[:end])
            totals[step] = totals.get(step, 0) + count
    return [
        {"category": name, "count": counts.get(name, 0), "total": totals[name]} for name in sorted(totals)
    ]


async def count_tags(tx: Transaction, scope: Scope) -> list[dict[str, Any]]:
    """Return {tag, count}, sorted by tag."""
    tags = (
        select(func.unnest(memory_table.c.tags).label("tag")).where(*MemoryFilters().to_sql(scope)).subquery()
    )
    statement = select(tags.c.tag, func.count().label("memories")).group_by(tags.c.tag).order_by(tags.c.tag)
    return [{"tag": row.tag, "count": row.memories} for row in await tx.execute(statement)]


async def list_scope(tx: Transaction, scope: Scope, limit: int = MAX_MEMORIES) -> list[Memory]:
    """Return at most `limit` live and valid memories of a scope, the last changed first."""
    return await _last_changed(tx, scope, limit)


async def list_mergeable(tx: Transaction, scope: Scope, limit: int = MAX_MEMORIES) -> list[Memory]:
    """Return at most `limit` memories of a scope that may be merged with others, the last changed first.

    Those with a key, an end of their validity or an expiry stay as their callers wrote them: a merged text
    would have another name than they, or outlive them.
    """
    return await _last_changed(tx, scope, limit, IS_DEDUPLICATED, memory_table.c.expires_at.is_(None))


async def _last_changed(
    tx: Transaction, scope: Scope, limit: int, *conditions: ColumnElement[bool]
) -> list[Memory]:
    changed_at = func.coalesce(memory_table.c.updated_at, memory_table.c.created_at)
    where = (exact_scope(memory_table, scope), IS_UNEXPIRED, *MemoryFilters().of_fields(), *conditions)
    statement = select(memory_table).where(*where).order_by(changed_at.desc(), memory_table.c.id)
    return await queries.select_memories(tx, statement.limit(limit))


async def list_page(tx: Transaction, scope: Scope, after: str, limit: int) -> list[Memory]:
    """Return the memories of a scope whose id follows `after`, archived ones too, sorted by id.

    Those that have expired are left out.
    """
    follows = (exact_scope(memory_table, scope), memory_table.c.id > after, IS_UNEXPIRED)
    statement = select(memory_table).where(*follows).order_by(memory_table.c.id).limit(limit)
    return await queries.select_memories(tx, statement)


async def get_fingerprint(tx: Transaction, memory: Memory) -> bytes:
    """Return the stored fingerprint of a memory."""
    is_memory = (tenant_filter(memory_table, memory.tenant), memory_table.c.id == memory.id)
    return bytes((await tx.scalars(select(memory_table.c.fingerprint).where(*is_memory))).one())


async def find_existing(tx: Transaction, scope: Scope, ids: Collection[str]) -> set[str]:
    """Return those of these ids that are memories of exactly this scope."""
    is_wanted = (exact_scope(memory_table, scope), is_any_of(memory_table.c.id, ids))
    return set((await tx.scalars(select(memory_table.c.id).where(*is_wanted))).all())


async def ids_in_other_scopes(tx: Transaction, scope: Scope, ids: Collection[str]) -> set[str]:
    """Return those of these ids that other scopes of the tenant use."""
    # As one array: there may be more ids than a statement can have parameters.
    statement = select(memory_table.c.id).where(
        tenant_filter(memory_table, scope.tenant),
        is_any_of(memory_table.c.id, ids),
        not_(exact_scope(memory_table, scope)),
    )
    return set((await tx.scalars(statement)).all())


async def ids_by_fingerprint(
    tx: Transaction, scope: Scope, fingerprints: Collection[bytes]
) -> dict[bytes, str]:
    """Return the ids of the scope's live memories that have one of these fingerprints, by fingerprint."""
    statement = select(memory_table.c.fingerprint, memory_table.c.id).where(
        exact_scope(memory_table, scope),
        IS_DEDUPLICATED,
        memory_table.c.fingerprint.in_(fingerprints),
    )
    return {bytes(row.fingerprint): row.id for row in await tx.execute(statement)}


async def list_with_texts(tx: Transaction, scope: Scope, contents: Sequence[str]) -> list[Memory]:
    """Return the scope's live memories that have one of these texts, whatever their case and their time.

    Those with a namespace, a key, an end of their validity or an expiry stay as their callers wrote them, so
    they are left out.
    """
    if not contents:
        return []
    columns = memory_table.c
    texts = func.unnest(cast(list(contents), ARRAY(Text))).column_valued("texts")
    statement = select(*READ_COLUMNS).where(
        exact_scope(memory_table, scope),
        IS_DEDUPLICATED,
        columns.namespace == "",
        columns.expires_at.is_(None),
        func.lower(columns.content).in_(select(func.lower(texts))),
    )
    rows = await tx.execute(statement.order_by(columns.id.desc()))
    return [Memory.from_row(row) for row in rows.mappings()]


async def ids_by_key(tx: Transaction, scope: Scope, keys: Collection[str]) -> dict[tuple[str, str], str]:
    """Return the ids of the scope's live memories that have one of these keys, by namespace and key."""
    columns = memory_table.c
    statement = select(columns.namespace, columns.key, columns.id).where(
        exact_scope(memory_table, scope), columns.archived_at.is_(None), is_any_of(columns.key, keys)
    )
    return {(row.namespace, row.key): row.id for row in await tx.execute(statement)}


# A parameter of an INSERT can't have the name of a column that an expression sets.
_INSERT = (
    insert(memory_table)
    .values(search_terms=func.array_to_tsvector(bindparam("terms", type_=ARRAY(Text))))
    .returning(memory_table.c.id)
)


async def insert_memories(tx: Transaction, memories: Sequence[Memory]) -> None:
    """Insert memories as they are, with their ids and times.

    Raises IntegrityError when an id is taken, or when a live memory of the scope has the same fingerprint.
    """
    # Sorted like the rows of a save, so that an import and a save can't deadlock.
    rows = sorted((_columns(memory) for memory in memories), key=itemgetter("fingerprint"))
    if rows:
        await tx.execute(_INSERT, [{"terms": row.pop("search_terms"), **row} for row in rows])


async def replace_memory(tx: Transaction, memory: Memory) -> None:
    """Overwrite every column of the memory with this id."""
    columns = _columns(memory)
    search_terms = func.array_to_tsvector(literal(columns.pop("search_terms"), ARRAY(Text)))
    await queries.update_columns(tx, memory.id, columns | {"search_terms": search_terms})


def _columns(memory: Memory) -> dict[str, Any]:
    fields = memory.model_dump(exclude={"source", "effective_importance", "origin"})
    # These fields are left out of a dump, because callers don't see them.
    hidden = {
        "tenant": memory.tenant,
        "content_version": memory.content_version,
        "saved_without_source": memory.saved_without_source,
    }
    texts = {"state": memory.state.value, "archived_by": memory.archived_by and memory.archived_by.value}
    decision = {"decided_by": memory.decided_by and memory.decided_by.value}
    decision["verdict"] = memory.verdict and memory.verdict.value
    return fields | hidden | texts | decision | memory.origin.columns() | new_rows.derived_columns(memory)
