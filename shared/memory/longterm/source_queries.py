"""Statements on the sources of memories: the turns that they come from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Integer, any_, func, or_, select, text

from shared.infra.postgres import is_any_of, is_in_turn_ranges, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import HAS_SEVERAL_SOURCES, memory

_UPDATE = text(
    """
    UPDATE memory SET sources = r.sources, version = memory.version + 1
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id text, sources jsonb)
    WHERE memory.tenant = :tenant AND memory.id = r.id
    RETURNING memory.*
    """
)


async def lock_from_turns(tx: Transaction, ranges: Iterable[tuple[str, int, int]]) -> list[Memory]:
    """Lock the memories with a source among these turns, archived ones too, and return them.

    A range of turns is (session id, first seq, last seq).
    """
    where = _are_from_turns(tx.tenant, list(ranges))
    statement = select(memory).where(*where).order_by(memory.c.id).with_for_update()
    return [Memory.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_ids_from_turns(tx: Transaction, ranges: Iterable[tuple[str, int, int]]) -> list[str]:
    """Return the ids of the memories with a source among these turns, without locking them."""
    statement = select(memory.c.id).where(*_are_from_turns(tx.tenant, list(ranges)))
    return list((await tx.scalars(statement)).all())


async def list_replaced_by(tx: Transaction, ids: Sequence[str]) -> list[str]:
    """Return the ids of the live and closed memories that one of these has replaced."""
    if not ids:
        return []
    successor = memory.alias()
    is_replaced = (
        memory.c.agent_id == successor.c.agent_id,
        memory.c.user_id.is_not_distinct_from(successor.c.user_id),
        memory.c.archived_at.is_(None),
        memory.c.valid_until.is_not(None),
        successor.c.id == any_(memory.c.superseded_by),
    )
    are_successors = (successor.c.tenant == tx.tenant, is_any_of(successor.c.id, ids))
    has_begun = successor.c.valid_from.is_not(None)
    statement = select(memory.c.id).where(
        tenant_filter(memory, tx.tenant), *are_successors, has_begun, *is_replaced
    )
    return list((await tx.scalars(statement)).all())


def _are_from_turns(tenant: str, ranges: Sequence[tuple[str, int, int]]) -> tuple[ColumnElement[bool], ...]:
    source = func.jsonb_array_elements(memory.c.sources).table_valued("value")
    last_seq = source.c.value.op("->>")("seq").cast(Integer)
    first_seq = func.coalesce(source.c.value.op("->>")("first_seq").cast(Integer), last_seq)
    session_id = source.c.value.op("->>")("session_id")
    is_named = (
        select(source.c.value).where(is_in_turn_ranges(session_id, first_seq, last_seq, ranges)).exists()
    )
    # What makes the indexes usable: the first source's session, or that there are more sources than one.
    is_first = is_any_of(memory.c.source_session_id, {session_id for session_id, _, _ in ranges})
    return tenant_filter(memory, tenant), or_(is_first, HAS_SEVERAL_SOURCES), is_named


async def update_sources(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> list[Memory]:
    """Set the sources of locked memories, given as {id, sources}, as new versions; return them."""
    values = {"tenant": tx.tenant, "rows": orjson.dumps([dict(row) for row in rows]).decode()}
    return [Memory.from_row(row) for row in (await tx.execute(_UPDATE, values)).mappings()]
