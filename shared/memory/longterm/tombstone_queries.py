"""Every statement on tombstones. Functions use the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope
from shared.memory.longterm.table import memory_tombstone


async def insert_missing(connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those of these tombstones that are not stored yet."""
    if rows:
        await connection.execute(insert(memory_tombstone).values(rows).on_conflict_do_nothing())


async def has_any(connection: AsyncConnection, scope: Scope) -> bool:
    """Return whether exactly this scope has a tombstone."""
    statement = select(memory_tombstone.c.id).where(exact_scope(memory_tombstone, scope)).limit(1)
    return await connection.scalar(statement) is not None


async def remove(connection: AsyncConnection, scope: Scope, digests: Sequence[bytes]) -> None:
    """Delete the tombstones of exactly this scope with these digests."""
    where = (exact_scope(memory_tombstone, scope), memory_tombstone.c.digest.in_(digests))
    await connection.execute(delete(memory_tombstone).where(*where))


async def find_existing(connection: AsyncConnection, scope: Scope, digests: Sequence[bytes]) -> set[bytes]:
    """Return those of these digests that have a tombstone in exactly this scope."""
    where = (exact_scope(memory_tombstone, scope), memory_tombstone.c.digest.in_(digests))
    statement = select(memory_tombstone.c.digest).where(*where)
    return {bytes(digest) for digest in (await connection.scalars(statement)).all()}
