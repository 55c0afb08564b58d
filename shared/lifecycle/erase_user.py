"""Erase a user (LT13): everything of theirs, of every agent, in every store, with a receipt.

Postgres goes first, in one transaction: from then on nothing can be read, for every answer is
read again from there. The points in Qdrant follow from the work rows written with it, at once
or, when it is away, by a worker: the receipt then says `pending`.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.sessions import queries as session_queries
from shared.conversation.state import scratch, tmp
from shared.conversation.turns import window
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.jobs.job import Job
from shared.lifecycle import delete_memory
from shared.lifecycle.delete_session import delete_rows
from shared.memory.longterm import history, maintenance_queries
from shared.memory.longterm.memory import Memory
from shared.memory.working import write
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.platform.spend import queries as charge_queries


@dataclass(slots=True)
class _Erased:
    counts: dict[str, int]
    claims: list[Job]
    sessions: list[tuple[str, str]]
    windows: list[str]


async def erase_user(resources: Resources, caller: Caller, user_id: str) -> dict[str, Any]:
    """Erase a user and return the receipt: a count for each kind of record, and each store's state.

    Raises errors.Forbidden for a key that is bound to an agent: a user is erased with every agent.
    """
    if caller.agent_id is not None:
        raise errors.Forbidden(f"this key is bound to agent_id '{caller.agent_id}'")
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        erased = await _erase_rows(connection, caller.tenant, user_id)
    indexed = await resources.index_writer.write_through([], erased.claims)
    await window.delete(resources, caller.tenant, [*erased.windows, *(one for one, _ in erased.sessions)])
    cleared, redis_state = await _clear_desks(resources, caller.tenant, user_id, erased)
    return {
        "user_id": user_id,
        "erased": erased.counts | cleared | {"points": len(erased.claims)},
        "stores": {"postgres": "done", "redis": redis_state, "qdrant": "done" if indexed else "pending"},
    }


async def _erase_rows(connection: AsyncConnection, tenant: str, user_id: str) -> _Erased:
    # First, for the records that go next blank the answers that repeat them: each is counted once.
    answers = await idempotency_queries.erase_user_responses(connection, tenant, user_id)
    opened = await session_queries.of_user(connection, tenant, user_id)
    entries = await _held(connection, tenant, user_id, [one for one, _ in opened])
    notes = await history.count(connection, tenant, [entry.id for entry in entries])
    claims, windows = await delete_memory.delete_rows(connection, tenant, entries)
    signals = await feedback_queries.count(connection, tenant, [one for one, _ in opened])
    held_claims = await delete_rows(connection, tenant, [one for one, _ in opened])
    charges = await charge_queries.anonymise_user(connection, tenant, user_id)
    counts = {
        "memories": len(entries),
        "archived": sum(entry.archived_at is not None for entry in entries),
        "history": notes,
        "sessions": len(opened),
        "feedback": signals,
        "turns": _records(held_claims, RecordKind.TURN),
        "observations": _records(held_claims, RecordKind.OBSERVATION),
        "stored_responses": answers,
        # Their amounts stay, for the money was spent; whose they were does not.
        "anonymised_charges": charges,
    }
    return _Erased(counts, [*claims, *held_claims], opened, windows)


def _records(claims: list[Job], kind: RecordKind) -> int:
    return len({claim.record_id for claim in claims if claim.kind is kind})


async def _held(
    connection: AsyncConnection, tenant: str, user_id: str, session_ids: list[str]
) -> list[Memory]:
    """Hold the entries of a user, and those that an enrichment which we waited for made of them meanwhile."""
    known: list[Memory] = []
    while len(
        found := await maintenance_queries.lock_of_user(connection, tenant, user_id, session_ids)
    ) > len(known):
        known = found
    return found


async def _clear_desks(
    resources: Resources, tenant: str, user_id: str, erased: _Erased
) -> tuple[dict[str, int], str]:
    try:
        with redis_client.failures_as_unavailable():
            cleared = [await write.clear(resources, tenant, namespace) for _, namespace in erased.sessions]
        await tmp.drop_of_sessions(resources, tenant, [one for one, _ in erased.sessions])
        dropped = await scratch.erase(resources, tenant, user_id)
    except errors.Unavailable:
        return {"working_entries": 0, "scratch_stores": 0}, "pending"
    return {"working_entries": sum(cleared), "scratch_stores": dropped}, "done"
