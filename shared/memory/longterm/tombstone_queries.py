"""Every statement on tombstones. Functions use the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope
from shared.memory.longterm.table import memory_tombstone


async def insert_missing(connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those of these tombstones that are not stored yet."""
    if rows:
        await connection.execute(insert(memory_tombstone).values(rows).on_conflict_do_nothing())


_HAS_ANY = text(
    """
    SELECT id FROM memory_tombstone
    WHERE tenant = :tenant AND agent_id = :agent_id AND user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
    LIMIT 1
    """
)


async def has_any(connection: AsyncConnection, scope: Scope) -> bool:
    """Return whether exactly this scope has a tombstone."""
    values = {"tenant": scope.tenant, "agent_id": scope.agent_id, "user_id": scope.user_id}
    return await prepared.fetch_one(connection, _HAS_ANY, values) is not None


async def remove(connection: AsyncConnection, scope: Scope, digests: Sequence[bytes]) -> None:
    """Delete the tombstones of exactly this scope with these digests."""
    where = (exact_scope(memory_tombstone, scope), memory_tombstone.c.digest.in_(digests))
    await connection.execute(delete(memory_tombstone).where(*where))


async def find_existing(connection: AsyncConnection, scope: Scope, digests: Sequence[bytes]) -> set[bytes]:
    """Return those of these digests that have a tombstone in exactly this scope."""
    where = (exact_scope(memory_tombstone, scope), memory_tombstone.c.digest.in_(digests))
    statement = select(memory_tombstone.c.digest).where(*where)
    return {bytes(digest) for digest in (await connection.scalars(statement)).all()}
