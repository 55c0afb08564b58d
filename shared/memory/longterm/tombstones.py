"""Tombstones: keyed digests of deleted texts, so that no worker and no import brings them back.

Only a save by a caller, or an import that restores on request, removes a tombstone.
"""

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope
from shared.memory.longterm.fingerprint import tombstone_digest
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import memory_tombstone
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
    if rows:
        await connection.execute(insert(memory_tombstone).values(rows).on_conflict_do_nothing())


async def remove(connection: AsyncConnection, scope: Scope, contents: Sequence[str]) -> None:
    """Delete the tombstones of these texts in this scope."""
    in_scope = exact_scope(memory_tombstone, scope)
    # Most scopes have no tombstone, and the digests need another query.
    if await connection.scalar(select(memory_tombstone.c.id).where(in_scope).limit(1)) is None:
        return
    digests = await _digests(connection, scope.tenant, contents)
    await connection.execute(delete(memory_tombstone).where(in_scope, memory_tombstone.c.digest.in_(digests)))


async def find_deleted(connection: AsyncConnection, scope: Scope, contents: Sequence[str]) -> set[str]:
    """Return those of these texts that have a tombstone in this scope."""
    digests = await _digests(connection, scope.tenant, contents)
    statement = select(memory_tombstone.c.digest).where(
        exact_scope(memory_tombstone, scope), memory_tombstone.c.digest.in_(digests)
    )
    deleted_digests = {bytes(digest) for digest in (await connection.scalars(statement)).all()}
    return {content for content, digest in zip(contents, digests, strict=True) if digest in deleted_digests}


async def _digests(connection: AsyncConnection, tenant: str, contents: Sequence[str]) -> list[bytes]:
    secret = await auth_queries.get_tenant_secret(connection, tenant)
    return [tombstone_digest(secret, content) for content in contents]
