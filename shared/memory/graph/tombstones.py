"""Tombstones: keyed digests of what callers have deleted, so that no dream and no import brings it back.

A deleted entity comes back under none of its names, and a deleted triple not between the same two names.
Only a caller who saves it removes the tombstone.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.memory.graph import tombstone_queries
from shared.memory.graph.names import fold
from shared.platform.auth import queries as auth_queries

Words = tuple[str, ...]
"""What a tombstone is of: the name of an entity, or subject, predicate and object of a triple."""


async def add(connection: AsyncConnection, scope: Scope, deleted: Iterable[Words]) -> None:
    """Store a tombstone of each of these in exactly this scope."""
    await tombstone_queries.add(connection, scope, [*(await _digests(connection, scope, deleted))])


async def remove(connection: AsyncConnection, scope: Scope, saved: Iterable[Words]) -> None:
    """Remove the tombstones of these: a caller has saved them."""
    await tombstone_queries.remove(connection, scope, [*(await _digests(connection, scope, saved))])


async def find_deleted(connection: AsyncConnection, scope: Scope, proposed: Iterable[Words]) -> set[Words]:
    """Return those that a caller has deleted from exactly this scope."""
    digests = await _digests(connection, scope, proposed)
    existing = await tombstone_queries.find_existing(connection, scope, [*digests])
    return {words for digest, words in digests.items() if digest in existing}


async def _digests(connection: AsyncConnection, scope: Scope, items: Iterable[Words]) -> dict[bytes, Words]:
    secret = await auth_queries.get_tenant_secret(connection, scope.tenant)
    return {_digest(secret, words): words for words in items}


def _digest(secret: bytes, words: Sequence[str]) -> bytes:
    text = "\x1f".join(["graph", *map(fold, words)])
    return hmac.new(secret, text.encode(), hashlib.sha256).digest()
