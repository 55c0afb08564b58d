"""What was deleted on purpose stays deleted: only an explicit new save lifts a tombstone."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.infra.postgres import tenant_filter
from shared.memory.longterm.fingerprint import tombstone_digest
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import memory_tombstone
from shared.platform.auth import queries as auth_queries


async def add(connection: AsyncConnection, tenant: str, entries: Sequence[Memory]) -> None:
    """Remember, as keyed digests, that these facts were forgotten in their scopes."""
    secret = await auth_queries.get_tenant_secret(connection, tenant)
    rows = [
        {
            "tenant": tenant,
            "agent_id": entry.agent_id,
            "user_id": entry.user_id,
            "digest": tombstone_digest(secret, entry.content),
            "memory_id": entry.id,
        }
        for entry in entries
    ]
    if rows:
        await connection.execute(insert(memory_tombstone).values(rows).on_conflict_do_nothing())


async def remove(connection: AsyncConnection, scope: Scope, contents: Sequence[str]) -> None:
    """Forget that these were forgotten: somebody said them anew."""
    if await connection.scalar(select(memory_tombstone.c.id).where(*_of(scope)).limit(1)) is None:
        return
    digests = await _digests(connection, scope.tenant, contents)
    await connection.execute(
        delete(memory_tombstone).where(*_of(scope), memory_tombstone.c.digest.in_(digests))
    )


async def find_deleted(connection: AsyncConnection, scope: Scope, contents: Sequence[str]) -> set[str]:
    """Return which of these texts were deleted on purpose in this scope."""
    digests = await _digests(connection, scope.tenant, contents)
    known = select(memory_tombstone.c.digest).where(*_of(scope), memory_tombstone.c.digest.in_(digests))
    found = {bytes(digest) for digest in (await connection.scalars(known)).all()}
    return {content for content, digest in zip(contents, digests, strict=True) if digest in found}


async def _digests(connection: AsyncConnection, tenant: str, contents: Sequence[str]) -> list[bytes]:
    secret = await auth_queries.get_tenant_secret(connection, tenant)
    return [tombstone_digest(secret, content) for content in contents]


def _of(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    same_user = memory_tombstone.c.user_id.is_not_distinct_from(scope.user_id)
    return (
        tenant_filter(memory_tombstone, scope.tenant),
        memory_tombstone.c.agent_id == scope.agent_id,
        same_user,
    )
