"""Every statement on tombstones. Functions use the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, LargeBinary, Text, any_, bindparam, delete, select, text
from sqlalchemy.dialects.postgresql import insert

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope
from shared.infra.transaction import Transaction
from shared.memory.longterm.table import memory_tombstone


async def insert_missing(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those of these tombstones that are not stored yet."""
    if rows:
        await tx.execute(insert(memory_tombstone).values(rows).on_conflict_do_nothing())


_INSERT_DIGESTS = text(
    """
    INSERT INTO memory_tombstone (tenant, agent_id, user_id, memory_id, digest)
    SELECT :tenant, :agent_id, :user_id, memory_id, digest
    FROM unnest(:memory_ids, :digests) AS deleted (memory_id, digest)
    ON CONFLICT DO NOTHING
    """
).bindparams(bindparam("memory_ids", type_=ARRAY(Text)), bindparam("digests", type_=ARRAY(LargeBinary)))


async def insert_digests(tx: Transaction, scope: Scope, digests: Mapping[str, bytes]) -> None:
    """Insert those of these tombstones of one scope that are not stored yet, given by memory id."""
    arrays = {"memory_ids": list(digests), "digests": list(digests.values())}
    if digests:
        await tx.fetch(_INSERT_DIGESTS, prepared.scope_values(scope) | arrays)


_HAS_ANY = select(memory_tombstone.c.id).where(exact_scope(memory_tombstone, prepared.named_scope())).limit(1)


async def has_any(tx: Transaction, scope: Scope) -> bool:
    """Return whether exactly this scope has a tombstone."""
    return await tx.fetch_one(_HAS_ANY, prepared.scope_values(scope)) is not None


async def remove(tx: Transaction, scope: Scope, digests: Sequence[bytes]) -> None:
    """Delete the tombstones of exactly this scope with these digests."""
    where = (exact_scope(memory_tombstone, scope), memory_tombstone.c.digest.in_(digests))
    await tx.execute(delete(memory_tombstone).where(*where))


_FIND_EXISTING = select(memory_tombstone.c.digest).where(
    exact_scope(memory_tombstone, prepared.named_scope()),
    memory_tombstone.c.digest == any_(bindparam("digests", type_=ARRAY(LargeBinary))),
)


async def find_existing(tx: Transaction, scope: Scope, digests: Sequence[bytes]) -> set[bytes]:
    """Return those of these digests that have a tombstone in exactly this scope."""
    values = prepared.scope_values(scope) | {"digests": list(digests)}
    return {bytes(row["digest"]) for row in await tx.fetch(_FIND_EXISTING, values)}
