"""Every statement of a search on memories: what is read of the hits to rank them.

Functions take the caller's transaction. A search without filters is the frequent case, so its statements
are constants (`shared.infra.prepared`): built from the same conditions, with names in place of the values.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Date, Double, Select, Subquery, cast, func, select
from sqlalchemy.sql import visitors

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.key_look_up import look_up
from shared.infra.transaction import Transaction
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.table import memory
from shared.search.text import tsvector

RANKED_COLUMNS = (
    *(memory.c.id, memory.c.version, memory.c.user_id, memory.c.content, memory.c.category, memory.c.tags),
    *(memory.c.fingerprint, memory.c.importance, memory.c.source_session_id, memory.c.source_seq),
    # Each time that the driver decodes takes as long as ten other values, a day as long as two.
    cast(func.extract("epoch", func.now() - memory.c.last_seen_at), Double).label("seconds_unseen"),
    cast(func.timezone("UTC", func.coalesce(memory.c.occurred_at, memory.c.created_at)), Date).label("day"),
    # When what it says became true, or else when it was said last.
    cast(
        func.extract(
            "epoch", func.coalesce(memory.c.valid_from, memory.c.occurred_at, memory.c.last_seen_at)
        ),
        Double,
    ).label("since"),
    *(memory.c.agent_id, memory.c.namespace, memory.c.key),
    # As text, because each JSON value is decoded in Python.
    *(memory.c.sources[0][name].astext.label(name) for name in ("speaker", "role")),
)
"""What a ranking reads of a memory, with the speaker and the role of the first of its sources.

`seconds_unseen` have passed since it was last seen, and `day` is that of the event that it is about, in UTC.
"""


async def list_hits(
    tx: Transaction, scope: Scope, filters: MemoryFilters, ids: Sequence[str]
) -> list[prepared.Row]:
    """Return the rows of those of these memories that the scope sees and that match the filters."""
    return await _select(tx, scope, filters, _BY_ID, {"ids": list(ids)})


async def list_at_turns(
    tx: Transaction, scope: Scope, filters: MemoryFilters, turn_keys: Iterable[tuple[str, int]]
) -> list[prepared.Row]:
    """Return the rows of the memories that were saved from these turns, as `list_hits` does."""
    sessions, seqs = zip(*turn_keys, strict=True)
    return await _select(tx, scope, filters, _AT_TURN, {"sessions": sessions, "seqs": seqs})


async def list_matching(
    tx: Transaction, scope: Scope, filters: MemoryFilters, terms: Sequence[str], limit: int
) -> list[prepared.Row]:
    """Return the rows that contain any of the terms and match the filters, best match first."""
    if not terms:
        return []
    matches, rank = tsvector.matches_any(memory.c.search_terms, terms)
    statement = select(*RANKED_COLUMNS).where(*filters.to_sql(scope), matches)
    best_first = statement.order_by(rank.desc(), memory.c.last_seen_at.desc()).limit(limit)
    return list((await tx.execute(best_first)).mappings())


_BY_ID = look_up(memory, ids=memory.c.id)
_AT_TURN = look_up(memory, sessions=memory.c.source_session_id, seqs=memory.c.source_seq)


async def _select(
    tx: Transaction, scope: Scope, filters: MemoryFilters, found: Subquery, keys: Mapping[str, Sequence[Any]]
) -> list[prepared.Row]:
    values: dict[str, Any] = {**prepared.scope_values(scope), **keys}
    if filters == MemoryFilters():
        return await tx.fetch(_unfiltered(found, has_user=scope.user_id is not None), values)
    rows = await tx.execute(_statement(found, filters.to_sql(scope)), values)
    return list(rows.mappings())


@cache
def _unfiltered(found: Subquery, *, has_user: bool) -> Select[Any]:
    return _statement(found, MemoryFilters().to_sql(prepared.named_scope(has_user=has_user)))


def _statement(found: Subquery, conditions: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """Return the select of what a ranking reads of those of the found memories that meet the conditions."""

    def of_found(element: Any, **_: Any) -> ColumnElement[Any] | None:
        return found.c[element.key] if isinstance(element, Column) and element.table is memory else None

    columns, where = (
        [visitors.replacement_traverse(element, {}, of_found) for element in elements]
        for elements in (RANKED_COLUMNS, conditions)
    )
    return select(*columns).where(*where)
