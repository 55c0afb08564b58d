"""What was deleted on purpose stays deleted: only an explicit new save lifts a tombstone."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.infra.postgres import owned_by
from shared.memory.longterm.fingerprint import forgotten_digest
from shared.memory.longterm.memory import Entry
from shared.memory.longterm.table import tombstone
from shared.platform.auth import queries as auth_queries


async def bury(connection: AsyncConnection, tenant: str, entries: Sequence[Entry]) -> None:
    """Remember, as keyed digests, that these facts were forgotten in their scopes."""
    secret = await auth_queries.secret_of(connection, tenant)
    rows = [
        {
            "tenant": tenant,
            "agent_id": entry.agent_id,
            "user_id": entry.user_id,
            "digest": forgotten_digest(secret, entry.content),
            "entry_id": entry.id,
        }
        for entry in entries
    ]
    if rows:
        await connection.execute(insert(tombstone).values(rows).on_conflict_do_nothing())


async def lift(connection: AsyncConnection, scope: Scope, contents: Sequence[str]) -> None:
    """Forget that these were forgotten: somebody said them anew."""
    if await connection.scalar(select(tombstone.c.id).where(*_of(scope)).limit(1)) is None:
        return
    digests = await _digests(connection, scope.tenant, contents)
    await connection.execute(delete(tombstone).where(*_of(scope), tombstone.c.digest.in_(digests)))


async def forgotten(connection: AsyncConnection, scope: Scope, contents: Sequence[str]) -> set[str]:
    """Return which of these texts were deleted on purpose in this scope."""
    digests = await _digests(connection, scope.tenant, contents)
    known = select(tombstone.c.digest).where(*_of(scope), tombstone.c.digest.in_(digests))
    found = {bytes(digest) for digest in (await connection.scalars(known)).all()}
    return {content for content, digest in zip(contents, digests, strict=True) if digest in found}


async def _digests(connection: AsyncConnection, tenant: str, contents: Sequence[str]) -> list[bytes]:
    secret = await auth_queries.secret_of(connection, tenant)
    return [forgotten_digest(secret, content) for content in contents]


def _of(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    same_user = tombstone.c.user_id.is_not_distinct_from(scope.user_id)
    return owned_by(tombstone, scope.tenant), tombstone.c.agent_id == scope.agent_id, same_user
