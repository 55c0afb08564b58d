"""Memories that a fact out of a conversation has replaced: they are valid again when it is withdrawn."""

from collections.abc import Iterable, Sequence

from shared.conversation.turns.turn_range import TurnKey, ranges_of
from shared.infra.transaction import Transaction
from shared.memory.longterm import history, history_queries, queries, scope_queries, source_queries
from shared.memory.longterm.memory import Memory

_REASON = "what replaced it was withdrawn"


async def lock(tx: Transaction, turn_keys: Iterable[TurnKey]) -> list[Memory]:
    """Return the closed memories that memories from these turns have replaced.

    Both are locked together, in the order of all locks on memories.
    """
    successor_ids = await source_queries.list_ids_from_turns(tx, ranges_of(turn_keys))
    replaced_ids = await source_queries.list_replaced_by(tx, successor_ids)
    locked = await queries.lock(tx, sorted({*successor_ids, *replaced_ids}))
    return [memory for memory in locked if memory.id in replaced_ids]


async def reopen(
    tx: Transaction, actor: str, replaced: Sequence[Memory], gone: Sequence[Memory]
) -> list[Memory]:
    """Reopen those of these locked memories that what is gone has closed, and return them.

    One whose end a caller has set since stays closed, and one whose text a live memory has by now.
    """
    began_at = {memory.id: memory.valid_from for memory in gone}
    reopened: list[Memory] = []
    for memory in replaced:
        successor_ids = [id_ for id_ in memory.superseded_by if id_ in began_at]
        if any(memory.valid_until == began_at[id_] for id_ in successor_ids):
            reopened += await _reopen(tx, actor, memory)
    return reopened


async def _reopen(tx: Transaction, actor: str, memory: Memory) -> list[Memory]:
    valid_until = await history_queries.find_end_before_closing(tx, memory.id)
    fingerprint = await scope_queries.get_fingerprint(tx, memory)
    if await queries.find_duplicate(tx, memory.scope, fingerprint, memory.id) is not None:
        return []
    reopened = await queries.reopen(tx, memory, valid_until)
    await history.add_change(tx, actor, "reopened", memory, reopened, _REASON)
    return [reopened]
