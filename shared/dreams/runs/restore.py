"""Restore an archived memory for a caller, and keep later runs from archiving or merging it again."""

from sqlalchemy.exc import IntegrityError

from shared.dreams.runs import undone_change_queries
from shared.dreams.runs.undone_change_queries import MERGED
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.foundation.versions import Expected
from shared.infra.transaction import Transaction
from shared.memory.longterm import keyed, queries, restoring, save, tombstones, update
from shared.memory.longterm.memory import Archiver, Memory
from shared.platform.resources import Resources


async def restore(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    reason: str | None = None,
    expected: Expected | None = None,
) -> Memory:
    """Make an archived memory live again and return it. A live one is returned as it is.

    Raises errors as `update.update` does, among them errors.Conflict if a live memory has its text or its key
    now.
    """
    can_enrich = resources.language_model is not None
    try:
        async with resources.transaction(caller.tenant) as tx:
            before = await update.lock_writable(tx, caller, memory_id, expected)
            if before.archived_at is None:
                return before
            await update.require_no_duplicate(tx, before.model_copy(update={"archived_at": None}))
            await keyed.free_expired(tx, before)
            memory = await restoring.make_live(tx, caller.key_id, before, reason, can_enrich=can_enrich)
            await tombstones.remove(tx, memory.scope, [memory.content])
            await _remember(tx, before)
            await save.index(tx, [memory])
    except IntegrityError:
        raise errors.Conflict("a live memory has this text or this key now") from None
    return memory


async def _remember(tx: Transaction, before: Memory) -> None:
    """Remember a change of a worker that the caller took back, as the undo of a run does."""
    if before.archived_by is Archiver.CALLER:
        return
    successors = await queries.read(tx, before.superseded_by)
    reason = MERGED if successors else before.archive_reason or "archived"
    group_id = f"restored/{before.id}/{before.version}"
    await undone_change_queries.add_group(tx, group_id, [before, *successors], reason)
