"""Delete records that are past their retention period.

These are expired sessions, archived memories, turns, summaries, history, stored responses, cached embeddings,
feedback signals, dream records, and what of the graph was invalidated.
"""

from datetime import timedelta

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.sessions import namespace_queries
from shared.conversation.sessions import queries as session_queries
from shared.conversation.summary import queries as summary_queries
from shared.conversation.turns import queries as turn_queries
from shared.dreams.runs import queries as dream_queries
from shared.lifecycle import (
    delete_graph,
    delete_memory,
    delete_session,
    delete_turns,
    erasure_queries,
)
from shared.memory.business_context import queries as business_queries
from shared.memory.longterm import history_queries, maintenance_queries
from shared.memory.longterm import queries as memory_queries
from shared.memory.playbooks import settle
from shared.memory.preferences import learnt
from shared.memory.proposals import queries as proposal_queries
from shared.memory.skills import use_queries
from shared.memory.working import entries
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.search.index import embedding_cache

_BATCH = 500
_GRAPH_BATCH = 5000


async def delete_expired_sessions(resources: Resources, tenant: str) -> int:
    """Delete expired sessions with their records and working memory, and return how many."""
    async with resources.transaction(tenant) as tx:
        expired_sessions = await session_queries.lock_expired(tx, _BATCH)
        # What was promoted from them stays, as memories do: nobody has taken it back.
        expired_ids = [session.id for session in expired_sessions]
        await business_queries.keep_without_sessions(tx, expired_ids)
        await settle.settle_expired(tx, expired_ids)
        await delete_session.delete_rows(tx, resources, expired_sessions)
    return len(expired_sessions)


async def forget_empty_namespaces(resources: Resources, tenant: str) -> int:
    """Forget who owned the empty namespaces that no session writes to any more, and return how many."""
    after, forgotten = "", 0
    while True:
        async with resources.postgres.for_tenant(tenant) as tx:
            names = await namespace_queries.lock_without_session(tx, after, _BATCH)
            empty = [name for name in names if not await entries.holds_entries(resources, tenant, name)]
            await namespace_queries.remove(tx, empty)
        forgotten += len(empty)
        if len(names) < _BATCH:
            return forgotten
        after = names[-1]


async def purge_archived(resources: Resources, tenant: str) -> int:
    """Delete memories that were archived longer ago than the retention period, and return how many."""
    settings = resources.settings
    age, evidence_age = (
        timedelta(days=days) for days in (settings.retention_archived_days, settings.evidence_days)
    )
    async with resources.transaction(tenant) as tx:
        ids = await maintenance_queries.list_archived_before(tx, age, evidence_age, _BATCH)
        memories = await memory_queries.lock(tx, ids)
        # What was learnt with one of them goes on with the memory that says the same in its place.
        await learnt.hand_over(tx, memories)
        await delete_memory.delete_rows(tx, resources, memories)
    return len(memories)


async def delete_expired_memories(resources: Resources, tenant: str) -> int:
    """Delete memories whose own expiry is over, and return how many."""
    deleted_count = 0
    while True:
        async with resources.transaction(tenant) as tx:
            count = await delete_memory.delete_expired(tx, resources, _BATCH)
        deleted_count += count
        if count < _BATCH:
            return deleted_count


async def delete_old_turns(resources: Resources, tenant: str) -> int:
    """Delete turns past their retention period, if there is one, and return how many."""
    days = resources.settings.retention_turn_days
    if days is None:
        return 0
    async with resources.transaction(tenant) as tx:
        record_ids = await turn_queries.list_expired(tx, timedelta(days=days), _BATCH)
        return await delete_turns.delete_rows(tx, resources, record_ids)


async def delete_old_rows(resources: Resources, tenant: str) -> dict[str, int]:
    """Delete history, responses, cached embeddings, signals, dream records and expired parts of graphs.

    Proposals that have waited too long expire, and go later, as decided ones do. A summary is kept as long
    as turns are, from when it was last written. Return the number of deleted rows
    of each.
    """
    settings = resources.settings
    response_age = timedelta(hours=settings.retention_idempotency_hours)
    embedding_age = timedelta(days=settings.retention_embedding_cache_days)
    signal_age = timedelta(days=settings.retention_feedback_days)
    erasure_age = timedelta(days=settings.retention_erasure_days)
    graph_age = timedelta(days=settings.retention_graph_days)
    dream_age = timedelta(days=settings.retention_dream_days)
    use_age = timedelta(days=settings.retention_skill_use_days)
    proposal_age = timedelta(days=settings.retention_proposal_days)
    async with resources.postgres.for_tenant(tenant) as tx:
        await proposal_queries.expire(tx)
        deleted_counts = {
            "responses": await idempotency_queries.expire(tx, response_age),
            "embeddings": await embedding_cache.expire(tx, embedding_age),
            "signals": await feedback_queries.delete_expired(tx, signal_age),
            "dreams": await dream_queries.delete_old_runs(tx, dream_age),
            "graph": await delete_graph.purge_expired(tx, graph_age, _GRAPH_BATCH),
            "erasures": await erasure_queries.expire(tx, erasure_age),
            "proposals": await proposal_queries.delete_decided(tx, proposal_age),
            "skill_uses": await use_queries.expire(tx, use_age),
            "history": 0,
            "summaries": 0,
        }
        if settings.retention_turn_days is not None:
            turn_age = timedelta(days=settings.retention_turn_days)
            deleted_counts["summaries"] = await summary_queries.delete_old(tx, turn_age)
        if settings.retention_history_days is not None:
            history_age = timedelta(days=settings.retention_history_days)
            deleted_counts["history"] = await history_queries.expire(tx, history_age)
    return deleted_counts
