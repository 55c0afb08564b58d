"""Forget entries: content, history and every copy go; a keyed digest stays, so that they don't come back.

Copies of an entry's text stand in its history, in the lines recalled with turns, in stored
answers and in cached vectors. All but the last two stores' share one transaction; the point and
the cached window follow at once or, when their store is away, through the work rows and expiry.
"""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation import store as conversation
from shared.conversation import window
from shared.idempotency import store as idempotency
from shared.index import vectors
from shared.longterm import document, history, store, tombstones
from shared.longterm.record import Entry
from shared.resources import Resources
from shared.scope import Caller
from shared.stages import Kind, Track
from shared.work import store as work
from shared.work.store import Claim


async def forget(resources: Resources, caller: Caller, entry_id: str) -> Entry | None:
    """Delete an entry for good and return what it was; None when there was none.

    Deleting an archived entry goes on to the entries that were derived from nothing else.
    """
    async with resources.postgres.tenant(caller.tenant) as connection:
        entry = await store.get(connection, caller, entry_id, lock=True)
        if entry is None:
            return None
        doomed = [entry] if entry.archived_at is None else await _with_derived(connection, entry)
        await tombstones.bury(connection, caller.tenant, doomed)
        claims, sessions = await erase(connection, caller.tenant, doomed)
    await resources.writer.write_through([], claims)
    await window.discard(resources, caller.tenant, sessions)
    return entry


async def _with_derived(connection: AsyncConnection, entry: Entry) -> list[Entry]:
    doomed = {entry.id: entry}
    while True:
        derived = await store.derived_only_from(connection, entry.tenant, list(doomed))
        fresh = [one for one in derived if one.id not in doomed]
        if not fresh:
            return list(doomed.values())
        doomed |= {one.id: one for one in fresh}


async def erase(
    connection: AsyncConnection, tenant: str, entries: Sequence[Entry]
) -> tuple[list[Claim], list[str]]:
    """Delete entries and every copy in Postgres; return the index rows and the sessions touched."""
    ids = [entry.id for entry in entries]
    if not ids:
        return [], []
    passages = [document.document(entry).passage for entry in entries]
    await store.remove(connection, tenant, ids)
    await history.erase(connection, tenant, ids)
    await idempotency.blank(connection, tenant, ids)
    await vectors.forget(connection, tenant, passages)
    sessions = await conversation.erase_recalled(connection, tenant, ids)
    await work.drop(connection, tenant, Kind.MEMORY, ids, Track.ENRICHMENT)
    gone = {entry.id: entry.version + 1 for entry in entries}
    return await work.enqueue_index(connection, tenant, Kind.MEMORY, gone), sessions
