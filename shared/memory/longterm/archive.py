"""Archive a memory for a caller: out of every search, and restorable until it is purged.

Its text gets a tombstone, so that no worker and no import brings it back meanwhile.
"""

from shared.foundation.scope import Caller
from shared.foundation.stages import Pipeline, RecordKind
from shared.foundation.versions import Expected
from shared.jobs import queries as job_queries
from shared.memory.longterm import history, queries, save, tombstones, update
from shared.memory.longterm.memory import Archiver, Memory
from shared.platform.resources import Resources


async def archive(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    reason: str | None = None,
    expected: Expected | None = None,
) -> Memory:
    """Archive a memory and return it. One that a caller has archived before is returned as it is.

    Raises errors as `update.update` does, among them errors.Conflict for a memory that a worker archived.
    """
    async with resources.transaction(caller.tenant) as tx:
        before = await update.lock_writable(tx, caller, memory_id, expected)
        if before.archived_by is Archiver.CALLER:
            return before
        update.require_live(before)
        (memory,) = await queries.archive(tx, [memory_id], Archiver.CALLER, reason, before.superseded_by)
        await tombstones.add(tx, [memory])
        await history.add_change(tx, caller.key_id, "archived", before, memory, reason)
        await job_queries.cancel(tx, RecordKind.MEMORY, [memory_id], Pipeline.ENRICHMENT)
        await save.index(tx, [memory])
    return memory
