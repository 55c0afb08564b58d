"""What the graph says because of memories: it ends when they are closed, and holds when they are open again.

Only triples of exactly the scope of a memory follow it: whoever may change a memory of one user must not
change what the agent knows by that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle import closed_fact_queries
from shared.memory.graph import triple_queries
from shared.memory.longterm.memory import Memory
from shared.platform.idempotency import queries as idempotency_queries

MEMORY_CLOSED = "memory_closed"
"""The reason of triples that were invalidated because the memories that say so were closed."""
MAX_TRIPLES = 1000


@dataclass(frozen=True, slots=True)
class ClosedFact:
    """A triple that was invalidated, and the closed memories that it comes from."""

    triple_id: str
    memory_ids: list[str]


async def invalidate(
    tx: Transaction, scope: Scope, memory_ids: Sequence[str] | None = None, *, keeps: bool = False
) -> list[ClosedFact]:
    """Invalidate the triples that come from closed memories of a scope and from nothing that stands.

    Of these memories, or of all. At a time before a memory ended they are still shown. `keeps` leaves out
    what somebody has restored, as dreams do.
    """
    over = await closed_fact_queries.list_over(tx, scope, memory_ids, keeps=keeps, limit=MAX_TRIPLES)
    locked = await triple_queries.lock(tx, list(over))
    invalidated = [triple for triple in locked.values() if triple.expired_at is None]
    for triple in invalidated:
        ended_at, _ = over[triple.id]
        await triple_queries.invalidate(tx, triple.id, ended_at, MEMORY_CLOSED)
    await _erase_responses(tx, [triple.id for triple in invalidated])
    return [ClosedFact(triple.id, over[triple.id][1]) for triple in invalidated]


async def restore(tx: Transaction, scope: Scope, memory_ids: Sequence[str]) -> list[str]:
    """Let hold again what `invalidate` ended because of these memories, and return the ids of the triples.

    One stays as it is if another triple says the same by now.
    """
    if not memory_ids:
        return []
    ids = await closed_fact_queries.list_invalidated(tx, scope, memory_ids, MEMORY_CLOSED)
    restored: list[str] = []
    for triple in (await triple_queries.lock(tx, ids)).values():
        is_invalidated = triple.expired_at is not None and triple.reason == MEMORY_CLOSED
        if is_invalidated and not await triple_queries.has_open_double(tx, triple):
            await triple_queries.restore(tx, triple.id, keep=False)
            restored.append(triple.id)
    await _erase_responses(tx, restored)
    return restored


async def follow(tx: Transaction, before: Memory, after: Memory) -> None:
    """Let the graph follow a caller's change of when a memory holds."""
    if after.valid_until == before.valid_until:
        return
    if before.valid_until is not None:
        await restore(tx, after.scope, [after.id])
    if after.valid_until is not None:
        await invalidate(tx, after.scope, [after.id])


async def _erase_responses(tx: Transaction, triple_ids: Sequence[str]) -> None:
    """Erase the stored responses that show these triples as they were."""
    if triple_ids:
        await idempotency_queries.erase_responses(tx, triple_ids)
