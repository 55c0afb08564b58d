"""Tombstones: keyed digests of deleted texts, so that no worker and no import brings them back.

Only a save by a caller, or an import that restores on request, removes a tombstone.
"""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.memory.longterm import tombstone_queries
from shared.memory.longterm.fingerprint import tombstone_digest
from shared.memory.longterm.memory import Memory
from shared.platform.auth import queries as auth_queries


async def add(connection: AsyncConnection, tenant: str, memories: Sequence[Memory]) -> None:
    """Store a tombstone for the content of each memory, in the memory's own scope."""
    secret = await auth_queries.get_tenant_secret(connection, tenant)
    rows = [
        {
            "tenant": tenant,
            "agent_id": memory.agent_id,
            "user_id": memory.user_id,
            "digest": tombstone_digest(secret, memory.content),
            "memory_id": memory.id,
        }
        for memory in memories
    ]
    await tombstone_queries.insert_missing(connection, rows)


async def remove(connection: AsyncConnection, scope: Scope, contents: Sequence[str]) -> None:
    """Delete the tombstones of these texts in this scope."""
    # Most scopes have no tombstone, and the digests need another query.
    if await tombstone_queries.has_any(connection, scope):
        digests = await _digests(connection, scope.tenant, contents)
        await tombstone_queries.remove(connection, scope, list(digests.values()))


async def find_deleted(connection: AsyncConnection, scope: Scope, contents: Sequence[str]) -> set[str]:
    """Return those of these texts that have a tombstone in this scope."""
    digests = await _digests(connection, scope.tenant, contents)
    deleted_digests = await tombstone_queries.find_existing(connection, scope, list(digests.values()))
    return {content for content, digest in digests.items() if digest in deleted_digests}


async def _digests(connection: AsyncConnection, tenant: str, contents: Sequence[str]) -> dict[str, bytes]:
    """Return the tombstone digest of each text."""
    secret = await auth_queries.get_tenant_secret(connection, tenant)
    return {content: tombstone_digest(secret, content) for content in contents}
