"""What has a last day: sessions with a time to live, archived entries, turns, notes, answers, vectors."""

from datetime import timedelta

from shared.conversation import store as conversation
from shared.dreams import store as dreams
from shared.feedback import store as feedback
from shared.idempotency import store as idempotency
from shared.index import vectors
from shared.longterm import forget, history, store
from shared.resources import Resources
from shared.sessions import open as sessions
from shared.sessions import store as session_store
from shared.stages import Kind
from shared.work import store as work
from shared.working import write

_BATCH = 500


async def sessions_over(resources: Resources, tenant: str) -> int:
    """Delete sessions whose time is over, with all they hold and their desk; their points follow."""
    async with resources.postgres.tenant(tenant) as connection:
        over = await session_store.expired(connection, tenant, _BATCH)
        gone = [one for one, _ in over]
        claims = await sessions.discard(connection, tenant, gone) if gone else []
        desks = {namespace for _, namespace in over}
        # Patrols and subagents of one name share a desk: it stays as long as one of them is there.
        shared = await session_store.owners_of(connection, tenant, sorted(desks))
    await resources.writer.write_through([], claims)
    await sessions.drop_cached(resources, tenant, gone)
    for namespace in sorted(desks):
        if namespace.lower() not in shared:
            await write.clear(resources, tenant, namespace)
    return len(over)


async def archived(resources: Resources, tenant: str) -> int:
    """Purge entries archived long enough ago."""
    age = timedelta(days=resources.settings.archive_days)
    async with resources.postgres.tenant(tenant) as connection:
        ids = await store.archived_before(connection, tenant, age, _BATCH)
        gone = await store.lock(connection, tenant, ids)
        claims, _ = await forget.erase(connection, tenant, gone)
    await resources.writer.write_through([], claims)
    return len(gone)


async def turns(resources: Resources, tenant: str) -> int:
    """Delete turns older than the setting, if there is one."""
    days = resources.settings.turn_days
    if days is None:
        return 0
    async with resources.postgres.tenant(tenant) as connection:
        gone = await conversation.expired(connection, tenant, timedelta(days=days), _BATCH)
        versions = dict.fromkeys(gone, conversation.VERSION + 1)
        claims = await work.enqueue_index(connection, tenant, Kind.TURN, versions) if gone else []
    await resources.writer.write_through([], claims)
    return len(gone)


async def rows(resources: Resources, tenant: str) -> dict[str, int]:
    """Delete notes, stored answers, cached vectors, feedback and dream records past their time."""
    settings = resources.settings
    async with resources.postgres.tenant(tenant) as connection:
        answers = timedelta(hours=settings.idempotency_hours)
        unused = timedelta(days=settings.embedding_cache_days)
        gone = {
            "answers": await idempotency.expire(connection, tenant, answers),
            "vectors": await vectors.expire(connection, tenant, unused),
            "signals": await feedback.expire(connection, tenant, timedelta(days=settings.feedback_days)),
            "dreams": await dreams.expire(connection, tenant, timedelta(days=settings.dream_days)),
            "history": 0,
        }
        if settings.history_days is not None:
            notes = timedelta(days=settings.history_days)
            gone["history"] = await history.expire(connection, tenant, notes)
    return gone
