"""What one scope holds, exactly: the statements behind taking it out and in.

Elsewhere a reader with a user also sees the agent's common entries. Here a scope is the agent's
entries of that user, or the common ones when no user is named, so that the parts of an agent's
memory, each exported, make the whole, with nothing in it twice.
"""

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Text, and_, any_, bindparam, func, insert, literal, not_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.clients.postgres import owned_by
from shared.index import rowwords
from shared.longterm import document, store
from shared.longterm.fingerprint import fingerprint
from shared.longterm.record import Entry
from shared.longterm.table import entry
from shared.scope import Scope


def _held_by(scope: Scope) -> ColumnElement[bool]:
    return and_(entry.c.agent_id == scope.agent_id, entry.c.user_id.is_not_distinct_from(scope.user_id))


async def page(connection: AsyncConnection, scope: Scope, after: str, limit: int) -> list[Entry]:
    """Return entries of a scope, archived ones too, by id from `after` on."""
    beyond = (owned_by(entry, scope.tenant), _held_by(scope), entry.c.id > after)
    return await store.select_entries(
        connection, select(entry).where(*beyond).order_by(entry.c.id).limit(limit)
    )


async def elsewhere(connection: AsyncConnection, scope: Scope, ids: Collection[str]) -> set[str]:
    """Return which of these ids other scopes of the tenant have taken."""
    # One array: there may be more ids than a statement can have parameters.
    named = entry.c.id == any_(literal(list(ids), ARRAY(Text)))
    statement = select(entry.c.id).where(owned_by(entry, scope.tenant), named, not_(_held_by(scope)))
    return set((await connection.scalars(statement)).all())


async def facts(
    connection: AsyncConnection, scope: Scope, fingerprints: Collection[bytes]
) -> dict[bytes, str]:
    """Return which live entry of a scope says each of these facts."""
    live = (entry.c.archived_at.is_(None), entry.c.fingerprint.in_(fingerprints))
    statement = select(entry.c.fingerprint, entry.c.id).where(
        owned_by(entry, scope.tenant), _held_by(scope), *live
    )
    return {bytes(row.fingerprint): row.id for row in await connection.execute(statement)}


_INSERT = (
    insert(entry)
    .values(words=func.array_to_tsvector(bindparam("terms", type_=ARRAY(Text))))
    .returning(entry.c.id)
)


async def add(connection: AsyncConnection, entries: Sequence[Entry]) -> None:
    """Insert entries as they are, ids and times included; IntegrityError when an id or a fact is taken."""
    # Sorted as saves sort theirs, so that the two can't wait for each other.
    rows = sorted((columns(one) for one in entries), key=itemgetter("fingerprint"))
    if rows:
        await connection.execute(_INSERT, rows)


async def replace(connection: AsyncConnection, after: Entry) -> None:
    """Make an entry what it shall be."""
    values = columns(after)
    words = func.array_to_tsvector(literal(values.pop("terms"), ARRAY(Text)))
    await store.change(connection, after.tenant, after.id, values | {"words": words})


def columns(one: Entry) -> dict[str, Any]:
    """Return an entry's columns; its indexed words, not yet a tsvector, are `terms`."""
    hidden = {"tenant": one.tenant, "version": one.version, "content_version": one.content_version}
    found = {
        "state": one.state.value,
        "fingerprint": fingerprint(one.content, one.occurred_at),
        "terms": rowwords.of_text(document.keywords(one)),
    }
    return one.model_dump(exclude={"source", "effective_importance"}) | hidden | found
