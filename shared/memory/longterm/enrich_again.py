"""Ask once more for the enrichment of a memory that was kept as it was written."""

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.foundation.stages import MemoryState
from shared.foundation.versions import Expected
from shared.infra.transaction import Transaction
from shared.memory.longterm import history, queries, save, update
from shared.memory.longterm.memory import Memory
from shared.platform.resources import Resources

_KEPT_STATES = {MemoryState.FAILED, MemoryState.KEPT_RAW}


async def enrich_again(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    reason: str | None = None,
    expected: Expected | None = None,
) -> Memory:
    """Make a memory `pending` and return it. One that waits already is returned as it is.

    Raises errors.Conflict unless its state is `failed` or `kept-raw`, or if it has a key, or if there is no
    language model. Raises other errors as `update.update` does.
    """
    async with resources.transaction(caller.tenant) as tx:
        before = await update.lock_writable(tx, caller, memory_id, expected)
        if before.state is MemoryState.PENDING:
            return before
        _require_kept(before)
        if resources.language_model is None:
            raise errors.Conflict("no language model is configured")
        memory = await _make_pending(tx, caller, before, reason)
        await save.index(tx, [memory])
    return memory


def _require_kept(memory: Memory) -> None:
    update.require_live(memory)
    if memory.key is not None:
        raise errors.Conflict(f"memory '{memory.id}' has a key: it stays as it was written")
    if memory.state not in _KEPT_STATES:
        raise errors.Conflict(f"memory '{memory.id}' is {memory.state}: only failed and kept-raw ones")


async def _make_pending(tx: Transaction, caller: Caller, before: Memory, reason: str | None) -> Memory:
    values = {"state": MemoryState.PENDING.value, "failure_reason": None, "version": before.version + 1}
    memory = await queries.update_columns(tx, before.id, values)
    await history.add_change(tx, caller.key_id, "enrichment-requested", before, memory, reason)
    return memory
