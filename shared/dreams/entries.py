"""Long-term entries as dreams read them: all of exactly one scope."""

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.clients.postgres import owned_by
from shared.longterm import store
from shared.longterm.record import Entry
from shared.longterm.table import entry
from shared.scope import Scope

MOST = 20_000
"""What a pass holds in memory at once; of more, those that changed last."""


async def fact_of(connection: AsyncConnection, one: Entry) -> bytes:
    """Return the fingerprint of an entry."""
    mine = (owned_by(entry, one.tenant), entry.c.id == one.id)
    return bytes((await connection.scalars(select(entry.c.fingerprint).where(*mine))).one())


async def of_scope(connection: AsyncConnection, scope: Scope, limit: int = MOST) -> list[Entry]:
    """Return the live entries of exactly this scope, the last changed first, at most `limit`."""
    changed = func.coalesce(entry.c.updated_at, entry.c.created_at)
    statement = select(entry).where(*store.exactly(scope), entry.c.archived_at.is_(None))
    return await store.select_entries(connection, statement.order_by(changed.desc(), entry.c.id).limit(limit))
