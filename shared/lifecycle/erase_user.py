"""Erase everything that belongs to a user, for all agents and in every database, and return a receipt.

Postgres comes first, in one transaction. From then on nothing of the user can be read, because every
result is read from there. The points in Qdrant are deleted by the index jobs of that transaction: at
once, or by a worker if Qdrant is unavailable. In that case the receipt says `pending`.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.sessions import namespace_queries
from shared.conversation.sessions import queries as session_queries
from shared.conversation.state import scratch, tmp
from shared.conversation.turns import window
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.jobs.job import Job
from shared.lifecycle import delete_memory, delete_session
from shared.memory.longterm import history_queries, maintenance_queries
from shared.memory.longterm.memory import Memory
from shared.memory.working import write
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.platform.spend import queries as charge_queries


@dataclass(frozen=True, slots=True)
class _ErasedRows:
    """What was erased from Postgres.

    `sessions` are (id, namespace). `namespaces` are those that the user owned. `windows` are ids of other
    sessions whose cached windows are stale.
    """

    counts: dict[str, int]
    jobs: list[Job]
    sessions: list[tuple[str, str]]
    namespaces: list[str]
    windows: list[str]

    @property
    def session_ids(self) -> list[str]:
        return [session_id for session_id, _ in self.sessions]


async def erase_user(resources: Resources, caller: Caller, user_id: str) -> dict[str, Any]:
    """Erase a user and return the receipt: a count for each kind of record, and each database's state.

    Raises errors.Forbidden for a key that is bound to an agent, because a user is erased for all agents,
    and for one that is bound to another user.
    """
    rights.scope(caller, Area.USERS, Action.WRITE, None, user_id)
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        erased_rows = await _erase_rows(connection, caller.tenant, user_id)
    is_index_done = await resources.index_writer.write_through([], erased_rows.jobs)
    await window.delete(resources, caller.tenant, [*erased_rows.windows, *erased_rows.session_ids])
    redis_counts, redis_state = await _erase_redis(resources, caller.tenant, user_id, erased_rows)
    return {
        "user_id": user_id,
        "erased": erased_rows.counts | redis_counts | {"points": len(erased_rows.jobs)},
        "stores": {
            "postgres": "done",
            "redis": redis_state,
            "qdrant": "done" if is_index_done else "pending",
        },
    }


async def _erase_rows(connection: AsyncConnection, tenant: str, user_id: str) -> _ErasedRows:
    # Responses come first: deleting records below erases some of them too, and they would not be counted.
    response_count = await idempotency_queries.erase_user_responses(connection, tenant, user_id)
    sessions = await session_queries.list_of_user(connection, tenant, user_id)
    session_ids = [session_id for session_id, _ in sessions]
    memories = await _lock_memories(connection, tenant, user_id, session_ids)
    history_count = await history_queries.count(connection, tenant, [memory.id for memory in memories])
    memory_jobs, windows = await delete_memory.delete_rows(connection, tenant, memories)
    signal_count = await feedback_queries.count(connection, tenant, session_ids)
    session_jobs = await delete_session.delete_rows(connection, tenant, session_ids)
    namespaces = await namespace_queries.disown_user(connection, tenant, user_id)
    charge_count = await charge_queries.anonymise_user(connection, tenant, user_id)
    counts = {
        "memories": len(memories),
        "archived": sum(memory.archived_at is not None for memory in memories),
        "history": history_count,
        "sessions": len(sessions),
        "feedback": signal_count,
        "turns": _count_records(session_jobs, RecordKind.TURN),
        "observations": _count_records(session_jobs, RecordKind.OBSERVATION),
        "stored_responses": response_count,
        # The amounts stay, because the money was spent. Only the user is removed from them.
        "anonymised_charges": charge_count,
    }
    namespaces += [namespace for _, namespace in sessions]
    return _ErasedRows(counts, [*memory_jobs, *session_jobs], sessions, namespaces, windows)


def _count_records(jobs: list[Job], kind: RecordKind) -> int:
    return len({job.record_id for job in jobs if job.kind is kind})


async def _lock_memories(
    connection: AsyncConnection, tenant: str, user_id: str, session_ids: list[str]
) -> list[Memory]:
    """Lock and return the user's memories.

    Locking may wait for an enrichment, which then has added memories; so this repeats until none are new.
    """
    memories: list[Memory] = []
    while True:
        locked_memories = await maintenance_queries.lock_user_memories(
            connection, tenant, user_id, session_ids
        )
        if len(locked_memories) <= len(memories):
            return locked_memories
        memories = locked_memories


async def _erase_redis(
    resources: Resources, tenant: str, user_id: str, erased_rows: _ErasedRows
) -> tuple[dict[str, int], str]:
    """Clear working memory, temporary state and scratch stores; return the counts and Redis's state."""
    try:
        with redis_client.failures_as_unavailable():
            cleared_counts = [
                await write.clear(resources, tenant, namespace) for namespace in erased_rows.namespaces
            ]
        await tmp.drop_session_stores(resources, tenant, erased_rows.session_ids)
        scratch_count = await scratch.delete_user_stores(resources, tenant, user_id)
    except errors.Unavailable:
        return {"working_entries": 0, "scratch_stores": 0}, "pending"
    return {"working_entries": sum(cleared_counts), "scratch_stores": scratch_count}, "done"
