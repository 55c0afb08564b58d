"""Every statement on what `basic_session` keeps. Functions take the caller's transaction and never commit.

Whoever writes takes a number first: that locks the store's row, so caps and versions hold whatever
else is going on.
"""

from typing import Any

from sqlalchemy import BigInteger, RowMapping, Table, and_, cast, delete, extract, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import ColumnElement

from shared.conversation.state.table import state_collection, state_key, state_store, transcript_entry
from shared.conversation.state.types import Owner, TranscriptDraft
from shared.infra.postgres import tenant_filter


async def next_version(connection: AsyncConnection, owner: Owner) -> int:
    """Lock a store, made if it is new, and return the number of the write that follows."""
    now = cast(extract("epoch", func.clock_timestamp()) * 1_000_000, BigInteger)
    statement = insert(state_store).values(_named(owner) | {"version": now})
    later = {"version": func.greatest(state_store.c.version + 1, now)}
    numbered = statement.on_conflict_do_update(index_elements=list(state_store.primary_key), set_=later)
    return int(await connection.scalar(numbered.returning(state_store.c.version)) or 0)


def _named(owner: Owner) -> dict[str, Any]:
    return {"tenant": owner.tenant, "owner_kind": owner.kind, "owner_id": owner.id}


def _of(table: Table, owner: Owner) -> ColumnElement[bool]:
    return and_(
        tenant_filter(table, owner.tenant), table.c.owner_kind == owner.kind, table.c.owner_id == owner.id
    )


async def set_key(connection: AsyncConnection, owner: Owner, key: str, value: str, written: int) -> None:
    """Write a key."""
    changed = {"value": value, "version": written}
    statement = insert(state_key).values(_named(owner) | {"key": key} | changed)
    await connection.execute(
        statement.on_conflict_do_update(index_elements=list(state_key.primary_key), set_=changed)
    )


async def evict_keys(connection: AsyncConnection, owner: Owner, kept: int) -> None:
    """Delete all but the `kept` keys that were written last."""
    mine = _of(state_key, owner)
    order = state_key.c.version.desc()
    surplus = select(state_key.c.key).where(mine).order_by(order).offset(kept).scalar_subquery()
    await connection.execute(delete(state_key).where(mine, state_key.c.key.in_(surplus)))


async def get_key(connection: AsyncConnection, owner: Owner, key: str) -> RowMapping | None:
    """Return the row of a key."""
    statement = select(state_key).where(_of(state_key, owner), state_key.c.key == key)
    return (await connection.execute(statement)).mappings().one_or_none()


async def delete_key(connection: AsyncConnection, owner: Owner, key: str) -> bool:
    """Delete a key; tell whether it was there."""
    mine = (_of(state_key, owner), state_key.c.key == key)
    return (await connection.execute(delete(state_key).where(*mine))).rowcount > 0


async def list_keys(connection: AsyncConnection, owner: Owner, limit: int, after: int) -> list[RowMapping]:
    """Return rows of keys in the order of their last write."""
    statement = select(state_key).where(_of(state_key, owner), state_key.c.version > after)
    rows = await connection.execute(statement.order_by(state_key.c.version).limit(limit))
    return list(rows.mappings())


async def add_entry(connection: AsyncConnection, owner: Owner, draft: TranscriptDraft, written: int) -> None:
    """Add to a transcript."""
    said = {"role": draft.role, "content": draft.content, "metadata": dict(draft.metadata)}
    await connection.execute(insert(transcript_entry).values(_named(owner) | said | {"version": written}))


async def evict_entries(connection: AsyncConnection, owner: Owner, kept: int) -> None:
    """Delete all but the last `kept` entries of a transcript."""
    mine = _of(transcript_entry, owner)
    order = transcript_entry.c.version.desc()
    oldest = select(transcript_entry.c.version).where(mine).order_by(order).offset(kept).scalar_subquery()
    await connection.execute(delete(transcript_entry).where(mine, transcript_entry.c.version.in_(oldest)))


async def last_entries(connection: AsyncConnection, owner: Owner, last: int) -> list[RowMapping]:
    """Return the rows of the last entries, oldest first."""
    statement = select(transcript_entry).where(_of(transcript_entry, owner))
    rows = await connection.execute(statement.order_by(transcript_entry.c.version.desc()).limit(last))
    return list(rows.mappings())[::-1]


async def get_collection(connection: AsyncConnection, owner: Owner, label: str) -> RowMapping | None:
    """Return the row of a collection."""
    statement = select(state_collection).where(
        _of(state_collection, owner), state_collection.c.label == label
    )
    return (await connection.execute(statement)).mappings().one_or_none()


async def version_of(connection: AsyncConnection, owner: Owner, label: str) -> int:
    """Return the version of a collection, 0 if there is none."""
    mine = (_of(state_collection, owner), state_collection.c.label == label)
    return int(await connection.scalar(select(state_collection.c.version).where(*mine)) or 0)


async def put_collection(
    connection: AsyncConnection, owner: Owner, label: str, changed: dict[str, Any]
) -> None:
    """Write a collection; `changed` holds the columns beside its name."""
    statement = insert(state_collection).values(_named(owner) | {"label": label} | changed)
    await connection.execute(
        statement.on_conflict_do_update(index_elements=list(state_collection.primary_key), set_=changed)
    )


async def remove_collection(connection: AsyncConnection, owner: Owner, label: str) -> bool:
    """Remove a collection; tell whether it was there."""
    mine = (_of(state_collection, owner), state_collection.c.label == label)
    return (await connection.execute(delete(state_collection).where(*mine))).rowcount > 0


async def list_collections(connection: AsyncConnection, owner: Owner) -> list[RowMapping]:
    """Return the rows of collections by label, without their values."""
    kept = (column for column in state_collection.c if column.name not in ("value", "data"))
    statement = select(*kept).where(_of(state_collection, owner)).order_by(state_collection.c.label)
    return list((await connection.execute(statement)).mappings())


async def drop(connection: AsyncConnection, owner: Owner) -> bool:
    """Delete a store with all that it holds; tell whether it was there."""
    return (await connection.execute(delete(state_store).where(_of(state_store, owner)))).rowcount > 0
