"""Delete memories with every copy of their text; tombstones prevent their return.

Copies are in the history, in the lines recalled with turns, in stored responses, in dream runs and in
cached embeddings; in archived memories that the text was made from, and in those made from nothing else.
"""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.lifecycle import deletion, removal
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.removal import Removal
from shared.memory.longterm import maintenance_queries, tombstones
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.update import require_writable
from shared.platform.resources import Resources

_MAX_ATTEMPTS = 5


async def delete_memory(resources: Resources, caller: Caller, memory_id: str) -> Memory | None:
    """Delete a memory for good and return it as it was, or None if the caller sees no such memory.

    The archived memories that it was made from are deleted too, because they say the same. If it is
    archived itself, those that were made from nothing else go with it.
    Raises errors.Forbidden if the key may only read the memory.
    """
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        if await memory_queries.get(connection, caller, memory_id) is None:
            return None
        memories = await _lock_with_relatives(connection, caller.tenant, memory_id)
        memory = next((memory for memory in memories if memory.id == memory_id), None)
        if memory is None:  # another request has just deleted it
            return None
        require_writable(caller, memory)
        await tombstones.add(connection, caller.tenant, memories)
        rest = await delete_rows(connection, caller.tenant, memories)
    await removal.work_off(resources, rest)
    return memory


async def delete_rows(connection: AsyncConnection, tenant: str, memories: Sequence[Memory]) -> Removal:
    """Delete locked memories with every copy in Postgres, and nothing that was made from them.

    Return what is to be removed from Redis and Qdrant after the commit.
    """
    rows = Deletion(tenant)
    await deletion.add_memories(connection, rows, [memory.id for memory in memories])
    _, rest = await deletion.carry_out(connection, rows)
    return rest


async def _lock_with_relatives(connection: AsyncConnection, tenant: str, memory_id: str) -> list[Memory]:
    """Lock a memory and those that go with it, all in the order of their ids.

    Which ones go with it is known only once they are locked. If it turns out that there are more, the
    locks are given back and all are locked again.
    """
    for _ in range(_MAX_ATTEMPTS):
        async with connection.begin_nested() as savepoint:
            ids = await _with_relatives(connection, tenant, memory_id)
            memories = await memory_queries.lock(connection, tenant, sorted(ids))
            if await _with_relatives(connection, tenant, memory_id) <= ids:
                return memories
            await savepoint.rollback()
    raise errors.Busy(f"others are changing what memory '{memory_id}' was made of")


async def _with_relatives(connection: AsyncConnection, tenant: str, memory_id: str) -> set[str]:
    ids = {memory_id}
    for memory in await memory_queries.read(connection, tenant, [memory_id]):
        if memory.archived_at is not None:
            ids |= await _with_derived(connection, tenant, memory_id)
    return await _with_archived_sources(connection, tenant, ids)


async def _with_derived(connection: AsyncConnection, tenant: str, memory_id: str) -> set[str]:
    """Return a memory and those that were made, in one or more steps, from nothing else."""
    ids = {memory_id}
    while new_ids := set(await memory_queries.list_derived_only_from(connection, tenant, sorted(ids))) - ids:
        ids |= new_ids
    return ids


async def _with_archived_sources(connection: AsyncConnection, tenant: str, ids: set[str]) -> set[str]:
    """Return memories and the archived ones that they were made from, in one or more steps."""
    found, new_ids = set(ids), set(ids)
    while new_ids:
        sources = await maintenance_queries.list_archived_sources(connection, tenant, sorted(new_ids))
        new_ids = set(sources) - found
        found |= new_ids
    return found
