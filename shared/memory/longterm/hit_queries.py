"""Every statement of a search on memories: what is read of the hits to rank them.

Functions take the caller's transaction. A search without filters is the frequent case, so its statements
are constants (`shared.infra.prepared`): built from the same conditions, with names in place of the values.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from sqlalchemy import ARRAY, ColumnElement, Integer, Select, Text, any_, bindparam, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import is_any_of, is_any_turn_of
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.table import memory
from shared.search.text import tsvector

RANKED_COLUMNS = (
    *(memory.c.id, memory.c.version, memory.c.user_id, memory.c.content, memory.c.category, memory.c.tags),
    *(memory.c.importance, memory.c.last_seen_at, memory.c.occurred_at, memory.c.created_at),
    *(memory.c.source_session_id, memory.c.source_seq),
    # As text, because each JSON value is decoded in Python.
    *(memory.c.sources[0][name].astext.label(name) for name in ("speaker", "role")),
)
"""What a ranking reads of a memory, with the speaker and the role of the first of its sources."""


class _NamedScope(NamedTuple):
    """A scope whose values come with each call."""

    tenant: Any
    agent_id: Any
    user_id: Any


async def list_hits(
    connection: AsyncConnection, scope: Scope, filters: MemoryFilters, ids: Sequence[str]
) -> list[prepared.Row]:
    """Return the rows of those of these memories that the scope sees and that match the filters."""
    if filters == MemoryFilters():
        constant = _hits_of(has_user=scope.user_id is not None)
        return await prepared.fetch(connection, constant, _values(scope) | {"ids": list(ids)})
    return await _select(connection, filters.to_sql(scope), is_any_of(memory.c.id, ids))


async def list_at_turns(
    connection: AsyncConnection, scope: Scope, filters: MemoryFilters, turn_keys: Iterable[tuple[str, int]]
) -> list[prepared.Row]:
    """Return the rows of the memories that were saved from these turns, as `list_hits` does."""
    turn_keys = list(turn_keys)
    if filters == MemoryFilters():
        constant = _hits_at_turns(has_user=scope.user_id is not None)
        keys = {"sessions": [key[0] for key in turn_keys], "seqs": [key[1] for key in turn_keys]}
        return await prepared.fetch(connection, constant, _values(scope) | keys)
    is_at_turn = is_any_turn_of(memory.c.source_session_id, memory.c.source_seq, turn_keys)
    return await _select(connection, filters.to_sql(scope), is_at_turn)


async def list_matching(
    connection: AsyncConnection, scope: Scope, filters: MemoryFilters, terms: Sequence[str], limit: int
) -> list[prepared.Row]:
    """Return the rows that contain any of the terms and match the filters, best match first."""
    if not terms:
        return []
    matches, rank = tsvector.matches_any(memory.c.search_terms, terms)
    statement = select(*RANKED_COLUMNS).where(*filters.to_sql(scope), matches)
    best_first = statement.order_by(rank.desc(), memory.c.last_seen_at.desc()).limit(limit)
    return list((await connection.execute(best_first)).mappings())


async def _select(
    connection: AsyncConnection, visible: Sequence[ColumnElement[bool]], is_wanted: ColumnElement[bool]
) -> list[prepared.Row]:
    return list((await connection.execute(_statement(visible, is_wanted))).mappings())


def _statement(visible: Sequence[ColumnElement[bool]], is_wanted: ColumnElement[bool]) -> Select[Any]:
    return select(*RANKED_COLUMNS).where(*visible, is_wanted)


@cache
def _hits_of(*, has_user: bool) -> Select[Any]:
    return _statement(_visible(has_user=has_user), memory.c.id == any_(bindparam("ids", type_=ARRAY(Text))))


@cache
def _hits_at_turns(*, has_user: bool) -> Select[Any]:
    sessions = func.unnest(bindparam("sessions", type_=ARRAY(Text)))
    seqs = func.unnest(bindparam("seqs", type_=ARRAY(Integer)))
    at_turn = tuple_(memory.c.source_session_id, memory.c.source_seq).in_(select(sessions, seqs))
    return _statement(_visible(has_user=has_user), at_turn)


def _visible(*, has_user: bool) -> list[ColumnElement[bool]]:
    user_id: Any = bindparam("user_id") if has_user else None
    named_scope = _NamedScope(bindparam("tenant"), bindparam("agent_id"), user_id)
    return MemoryFilters().to_sql(cast("Scope", named_scope))


def _values(scope: Scope) -> dict[str, Any]:
    return {"tenant": scope.tenant, "agent_id": scope.agent_id, "user_id": scope.user_id}
