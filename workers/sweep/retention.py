"""What has a last day: sessions with a time to live, archived entries, turns, notes, answers, vectors."""

from datetime import timedelta

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.sessions import queries as session_queries
from shared.conversation.turns import queries as turn_queries
from shared.dreams.runs import queries as dream_queries
from shared.foundation.stages import RecordKind
from shared.jobs import index_jobs
from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.lifecycle.delete_session import delete_rows, drop_cached_state
from shared.memory.longterm import history, maintenance_queries
from shared.memory.longterm import queries as memory_queries
from shared.memory.working import write
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.search.index import embedding_cache

_BATCH = 500


async def delete_expired_sessions(resources: Resources, tenant: str) -> int:
    """Delete sessions whose time is over, with all they hold and their desk; their points follow."""
    async with resources.postgres.for_tenant(tenant) as connection:
        over = await session_queries.expired(connection, tenant, _BATCH)
        gone = [one for one, _ in over]
        claims = await delete_rows(connection, tenant, gone) if gone else []
        desks = {namespace for _, namespace in over}
        # Patrols and subagents of one name share a desk: it stays as long as one of them is there.
        shared = await session_queries.owners_of(connection, tenant, sorted(desks))
    await resources.index_writer.write_through([], claims)
    await drop_cached_state(resources, tenant, gone)
    for namespace in sorted(desks):
        if namespace.lower() not in shared:
            await write.clear(resources, tenant, namespace)
    return len(over)


async def purge_archived(resources: Resources, tenant: str) -> int:
    """Purge entries archived long enough ago."""
    age = timedelta(days=resources.settings.retention_archived_days)
    async with resources.postgres.for_tenant(tenant) as connection:
        ids = await maintenance_queries.list_archived_before(connection, tenant, age, _BATCH)
        gone = await memory_queries.lock(connection, tenant, ids)
        claims, _ = await delete_memory_everywhere.delete_rows(connection, tenant, gone)
    await resources.index_writer.write_through([], claims)
    return len(gone)


async def delete_old_turns(resources: Resources, tenant: str) -> int:
    """Delete turns older than the setting, if there is one."""
    days = resources.settings.retention_turn_days
    if days is None:
        return 0
    async with resources.postgres.for_tenant(tenant) as connection:
        gone = await turn_queries.expired(connection, tenant, timedelta(days=days), _BATCH)
        versions = dict.fromkeys(gone, turn_queries.VERSION + 1)
        claims = (
            await index_jobs.enqueue_index_jobs(connection, tenant, RecordKind.TURN, versions) if gone else []
        )
    await resources.index_writer.write_through([], claims)
    return len(gone)


async def delete_old_rows(resources: Resources, tenant: str) -> dict[str, int]:
    """Delete notes, stored answers, cached vectors, feedback and dream records past their time."""
    settings = resources.settings
    async with resources.postgres.for_tenant(tenant) as connection:
        answers = timedelta(hours=settings.retention_idempotency_hours)
        unused = timedelta(days=settings.retention_embedding_cache_days)
        gone = {
            "answers": await idempotency_queries.expire(connection, tenant, answers),
            "vectors": await embedding_cache.expire(connection, tenant, unused),
            "signals": await feedback_queries.expire(
                connection, tenant, timedelta(days=settings.retention_feedback_days)
            ),
            "dreams": await dream_queries.expire(
                connection, tenant, timedelta(days=settings.retention_dream_days)
            ),
            "history": 0,
        }
        if settings.retention_history_days is not None:
            notes = timedelta(days=settings.retention_history_days)
            gone["history"] = await history.expire(connection, tenant, notes)
    return gone
