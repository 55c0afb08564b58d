"""End a contest between two memories for a caller: one of them is closed, in favour of the other."""

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra.postgres import transaction_time
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.lifecycle import closed_facts
from shared.memory.longterm import history, queries, save, update
from shared.memory.longterm.memory import Memory
from shared.platform.resources import Resources


@repeated_after_deadlock
async def resolve(
    resources: Resources, caller: Caller, memory_id: str, keep_id: str, reason: str | None = None
) -> Memory:
    """Close a memory now in favour of its rival, and return it.

    Raises errors.NotFound if the caller sees no such memory, errors.Forbidden if it may not change it, and
    errors.Conflict if the other one does not contest it.
    """
    async with resources.transaction(caller.tenant) as tx:
        locked = {item.id: item for item in await queries.lock(tx, [memory_id, keep_id])}
        before = await update.lock_writable(tx, caller, memory_id)
        if keep_id not in before.contested_with:
            raise errors.Conflict(f"memory '{memory_id}' is not contested by '{keep_id}'")
        kept = locked[keep_id]  # of the same scope, as all rivals are
        now = await transaction_time(tx)
        at = now if before.valid_from is None else max(now, before.valid_from)
        closed = await queries.close(tx, before, at, kept.id)
        [winner] = await queries.read(tx, [kept.id])
        await history.add_changes(tx, caller.key_id, "resolved", [(before, closed), (kept, winner)], reason)
        await closed_facts.invalidate(tx, closed.scope, [closed.id])
        await save.index(tx, [closed])
    return closed
