"""Statements on the memories of exactly one scope that match filters, for their deletion."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, func, not_, or_, select

from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.table import IS_UNEXPIRED, memory


class LockedMatch(NamedTuple):
    """A locked memory, and whether it matches; if not, it was locked for the sake of others."""

    id: str
    content: str
    key: str | None
    is_archived: bool
    matches: bool


async def count(tx: Transaction, scope: Scope, filters: MemoryFilters) -> int:
    """Return how many memories of exactly this scope match."""
    statement = select(func.count()).select_from(memory).where(*_matching(scope, filters))
    return int(await tx.scalar(statement) or 0)


async def list_ids(
    tx: Transaction, scope: Scope, filters: MemoryFilters, limit: int | None = None
) -> list[str]:
    """Return the ids of at most `limit` memories of exactly this scope that match, in their order."""
    statement = select(memory.c.id).where(*_matching(scope, filters)).order_by(memory.c.id)
    return list((await tx.scalars(statement.limit(limit))).all())


async def lock(
    tx: Transaction, scope: Scope, filters: MemoryFilters, ids: Collection[str], related: Collection[str]
) -> list[LockedMatch]:
    """Lock those of these memories that still match, and the related ones, in the order of ids."""
    matches = and_(*_matching(scope, filters), is_any_of(memory.c.id, ids))
    columns = (memory.c.id, memory.c.content, memory.c.key, memory.c.archived_at.is_not(None))
    wanted = or_(matches, is_any_of(memory.c.id, related))
    statement = select(*columns, matches).where(tenant_filter(memory, scope.tenant), wanted)
    rows = await tx.execute(statement.order_by(memory.c.id).with_for_update())
    return [LockedMatch(*row) for row in rows]


async def list_archived(tx: Transaction, ids: Collection[str]) -> list[str]:
    """Return the ids of those of these memories that are archived."""
    is_one = (
        tenant_filter(memory, tx.tenant),
        is_any_of(memory.c.id, ids),
        memory.c.archived_at.is_not(None),
    )
    return list((await tx.scalars(select(memory.c.id).where(*is_one))).all())


async def list_saying_same(tx: Transaction, scope: Scope, ids: Collection[str]) -> list[str]:
    """Return the ids of the scope's other live memories that say the same as one of these."""
    fingerprints = select(memory.c.fingerprint).where(
        tenant_filter(memory, scope.tenant), is_any_of(memory.c.id, ids)
    )
    is_other = (
        exact_scope(memory, scope),
        memory.c.archived_at.is_(None),
        IS_UNEXPIRED,
        memory.c.fingerprint.in_(fingerprints),
        not_(is_any_of(memory.c.id, ids)),
    )
    return list((await tx.scalars(select(memory.c.id).where(*is_other))).all())


def _matching(scope: Scope, filters: MemoryFilters) -> list[ColumnElement[bool]]:
    return [exact_scope(memory, scope), *filters.of_fields()]
