"""Delete memories with every copy of their text; tombstones prevent their return.

Copies are in the history, in the lines recalled with turns, in stored responses, in dream runs and in
cached embeddings; in archived memories that the text was made from, and in those made from nothing else.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

from shared.foundation import errors, versions
from shared.foundation.scope import Caller, Scope
from shared.foundation.versions import ABSENT, Expected
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.lifecycle import deletion
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.relatives import with_relatives
from shared.memory.longterm import key_queries, maintenance_queries, matching_queries, tombstones
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory, Name
from shared.memory.longterm.update import require_writable
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

_MAX_ATTEMPTS = 5
_Find = Callable[[Transaction], Awaitable[Memory | None]]


async def delete_memory(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    reason: str | None = None,
    expected: Expected | None = None,
) -> Memory | None:
    """Delete a memory for good and return it as it was, or None if the caller sees no such memory.

    The archived memories that it was made from are deleted too, because they say the same. If it is
    archived itself, those that were made from nothing else go with it. A text that another live memory of the
    scope says gets no tombstone (`tombstones.select_unsaid`). The reason is kept with the tombstones.
    Raises errors.Forbidden if the key may only read the memory, and errors.PreconditionFailed if it is not in
    an expected version.
    """
    find = partial(memory_queries.get, caller=caller, memory_id=memory_id)
    return await _commit(resources, caller, find, reason, expected)


async def delete_by_key(
    resources: Resources,
    caller: Caller,
    scope: Scope,
    name: Name,
    reason: str | None = None,
    expected: Expected | None = None,
) -> Memory | None:
    """Delete the memory of exactly this scope that has this name, as `delete_memory` does."""
    find = partial(key_queries.get, scope=scope, name=name)
    return await _commit(resources, caller, find, reason, expected)


@repeated_after_deadlock
async def _commit(
    resources: Resources, caller: Caller, find: _Find, reason: str | None, expected: Expected | None
) -> Memory | None:
    async with resources.transaction(caller.tenant) as tx:
        locked, found = await _lock(tx, caller, await find(tx), expected)
        if found is not None:
            live = [memory for memory in locked.saying_same if memory.archived_at is None]
            unsaid = tombstones.select_unsaid(locked.to_delete, live)
            await tombstones.add(tx, unsaid, reason)
            await delete_rows(tx, resources, locked.to_delete)
        return found


async def _lock(
    tx: Transaction, caller: Caller, memory: Memory | None, expected: Expected | None
) -> tuple["_LockedMemories", Memory | None]:
    """Lock a memory that the caller sees, with what goes with it; return it as it is now, or None."""
    locked = _LockedMemories([], [])
    if memory is not None:
        locked = await _lock_with_relatives(tx, [memory.id], memory.scope)
    found = next((item for item in locked.to_delete if memory and item.id == memory.id), None)
    versions.check("the memory", found.version if found else ABSENT, expected)
    if found is not None:  # else there is none, or another request has just deleted it
        require_writable(caller, found)
    return locked, found


async def delete_expired(tx: RecordTransaction, resources: Resources, limit: int) -> int:
    """Delete at most `limit` memories whose expiry is over, with what goes with them, and no tombstone.

    Return how many had expired. Raises errors.Busy if one of them was given another expiry meanwhile.
    """
    ids = await maintenance_queries.list_expired(tx, limit)
    locked = await _lock_with_relatives(tx, ids)
    if not set(ids) <= set(await maintenance_queries.list_expired(tx, limit)):
        raise errors.Busy("others are writing what had expired")
    await delete_rows(tx, resources, locked.to_delete)
    return len(ids)


async def delete_rows(tx: RecordTransaction, resources: Resources, memories: Sequence[Memory]) -> None:
    """Delete locked memories with every copy, and nothing that was made from them."""
    rows = Deletion(tx.tenant)
    await deletion.add_memories(tx, rows, [memory.id for memory in memories])
    await deletion.delete(tx, resources, rows)


class _LockedMemories(NamedTuple):
    """Memories that go together, and the other live ones of a scope that say the same as one of them."""

    to_delete: list[Memory]
    saying_same: list[Memory]


async def _lock_with_relatives(
    tx: Transaction, ids: Sequence[str], scope: Scope | None = None
) -> _LockedMemories:
    """Lock memories, what goes with them and those of a scope that say the same, in the order of their ids.

    Which ones these are is known only once they are locked. If it turns out that there are more, the
    locks are given back and all are locked again.
    """
    for _ in range(_MAX_ATTEMPTS):
        async with tx.begin_nested() as savepoint:
            relatives = await with_relatives(tx, ids)
            same = await matching_queries.list_saying_same(tx, scope, relatives) if scope else []
            memories = await memory_queries.lock(tx, sorted({*relatives, *same}))
            # Fewer go with them if one of them was restored in the meantime.
            wanted = await with_relatives(tx, ids)
            if wanted <= relatives:
                to_delete = [memory for memory in memories if memory.id in wanted]
                others = [memory for memory in memories if memory.id not in wanted]
                return _LockedMemories(to_delete, others)
            await savepoint.rollback()
    raise errors.Busy("others are changing what these memories were made of")
