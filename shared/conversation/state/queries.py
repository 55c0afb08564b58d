"""Every statement on the tables of `basic_session`.

Functions take the caller's transaction and never commit. A writer calls `next_version` first. That
locks the row of the state store, so concurrent writers can't exceed the maximums or repeat a version.
"""

from typing import Any

from sqlalchemy import BigInteger, RowMapping, Table, and_, cast, delete, extract, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement

from shared.conversation.state.table import state_collection, state_key, state_store, transcript_entry
from shared.conversation.state.types import Owner, TranscriptDraft
from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction


async def next_version(tx: Transaction, owner: Owner) -> int:
    """Lock the row of a state store, creating it if necessary, and return the version of the next write."""
    now = cast(extract("epoch", func.clock_timestamp()) * 1_000_000, BigInteger)
    statement = insert(state_store).values(_owner_columns(owner) | {"version": now})
    renewed = {"version": func.greatest(state_store.c.version + 1, now)}
    upsert = statement.on_conflict_do_update(index_elements=list(state_store.primary_key), set_=renewed)
    return int(await tx.scalar(upsert.returning(state_store.c.version)) or 0)


async def raise_version(tx: Transaction, owner: Owner, version: int) -> None:
    """Let the next write of a locked state store have a higher version than this."""
    raised = func.greatest(state_store.c.version, version)
    await tx.execute(update(state_store).where(_owner_filter(state_store, owner)).values(version=raised))


def _owner_columns(owner: Owner) -> dict[str, Any]:
    return {"tenant": owner.tenant, "owner_kind": owner.kind, "owner_id": owner.id}


def _owner_filter(table: Table, owner: Owner) -> ColumnElement[bool]:
    is_owner = and_(table.c.owner_kind == owner.kind, table.c.owner_id == owner.id)
    return and_(tenant_filter(table, owner.tenant), is_owner)


async def set_key(tx: Transaction, owner: Owner, key: str, value: str, version: int) -> None:
    """Insert or update a key."""
    columns = {"value": value, "version": version}
    statement = insert(state_key).values(_owner_columns(owner) | {"key": key} | columns)
    await tx.execute(
        statement.on_conflict_do_update(index_elements=list(state_key.primary_key), set_=columns)
    )


async def evict_keys(tx: Transaction, owner: Owner, keep: int) -> None:
    """Delete all keys except the `keep` that were written last."""
    where = _owner_filter(state_key, owner)
    order = state_key.c.version.desc()
    surplus = select(state_key.c.key).where(where).order_by(order).offset(keep).scalar_subquery()
    await tx.execute(delete(state_key).where(where, state_key.c.key.in_(surplus)))


async def get_key(tx: Transaction, owner: Owner, key: str) -> RowMapping | None:
    """Return the row of a key, or None."""
    statement = select(state_key).where(_owner_filter(state_key, owner), state_key.c.key == key)
    return (await tx.execute(statement)).mappings().one_or_none()


async def lock_key(tx: Transaction, owner: Owner, key: str) -> int:
    """Return the version of a key, which stays until the transaction ends, or 0 if there is none."""
    where = (_owner_filter(state_key, owner), state_key.c.key == key)
    return int(await tx.scalar(select(state_key.c.version).where(*where).with_for_update()) or 0)


async def delete_key(tx: Transaction, owner: Owner, key: str) -> bool:
    """Delete a key; return whether it existed."""
    where = (_owner_filter(state_key, owner), state_key.c.key == key)
    return (await tx.execute(delete(state_key).where(*where))).rowcount > 0


async def list_keys(tx: Transaction, owner: Owner, limit: int, after: int) -> list[RowMapping]:
    """Return up to `limit` rows of keys written after version `after`, in the order of their last write."""
    statement = select(state_key).where(_owner_filter(state_key, owner), state_key.c.version > after)
    rows = await tx.execute(statement.order_by(state_key.c.version).limit(limit))
    return list(rows.mappings())


async def add_entry(tx: Transaction, owner: Owner, draft: TranscriptDraft, version: int) -> None:
    """Insert a transcript entry."""
    columns = {"role": draft.role, "content": draft.content, "metadata": dict(draft.metadata)}
    values = _owner_columns(owner) | columns | {"version": version}
    await tx.execute(insert(transcript_entry).values(values))


async def evict_entries(tx: Transaction, owner: Owner, keep: int) -> None:
    """Delete all entries of a transcript except the last `keep`."""
    where = _owner_filter(transcript_entry, owner)
    order = transcript_entry.c.version.desc()
    oldest = select(transcript_entry.c.version).where(where).order_by(order).offset(keep).scalar_subquery()
    await tx.execute(delete(transcript_entry).where(where, transcript_entry.c.version.in_(oldest)))


async def last_entries(tx: Transaction, owner: Owner, last: int) -> list[RowMapping]:
    """Return the rows of the last transcript entries, oldest first."""
    statement = select(transcript_entry).where(_owner_filter(transcript_entry, owner))
    rows = await tx.execute(statement.order_by(transcript_entry.c.version.desc()).limit(last))
    return list(rows.mappings())[::-1]


async def get_collection(tx: Transaction, owner: Owner, label: str) -> RowMapping | None:
    """Return the row of a collection, or None."""
    statement = select(state_collection).where(
        _owner_filter(state_collection, owner), state_collection.c.label == label
    )
    return (await tx.execute(statement)).mappings().one_or_none()


async def version_of(tx: Transaction, owner: Owner, label: str) -> int:
    """Return the version of a collection, or 0 if there is none."""
    where = (_owner_filter(state_collection, owner), state_collection.c.label == label)
    return int(await tx.scalar(select(state_collection.c.version).where(*where)) or 0)


async def put_collection(tx: Transaction, owner: Owner, label: str, columns: dict[str, Any]) -> None:
    """Insert or update a collection; `columns` are its values except the owner and the label."""
    statement = insert(state_collection).values(_owner_columns(owner) | {"label": label} | columns)
    await tx.execute(
        statement.on_conflict_do_update(index_elements=list(state_collection.primary_key), set_=columns)
    )


async def remove_collection(tx: Transaction, owner: Owner, label: str) -> bool:
    """Delete a collection; return whether it existed."""
    where = (_owner_filter(state_collection, owner), state_collection.c.label == label)
    return (await tx.execute(delete(state_collection).where(*where))).rowcount > 0


async def list_collections(tx: Transaction, owner: Owner) -> list[RowMapping]:
    """Return the rows of all collections, ordered by label and without their values."""
    columns = (column for column in state_collection.c if column.name not in ("value", "data"))
    statement = (
        select(*columns).where(_owner_filter(state_collection, owner)).order_by(state_collection.c.label)
    )
    return list((await tx.execute(statement)).mappings())


async def drop(tx: Transaction, owner: Owner) -> bool:
    """Delete a state store with its keys, transcript and collections; return whether it existed."""
    return (await tx.execute(delete(state_store).where(_owner_filter(state_store, owner)))).rowcount > 0
