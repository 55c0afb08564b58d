"""Read single memories, their history, and the categories and tags of a scope."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.memory.longterm import history_queries, queries, scope_queries
from shared.memory.longterm.memory import Memory
from shared.platform.resources import Resources


async def read_memory(resources: Resources, caller: Caller, memory_id: str) -> Memory:
    """Return a memory, archived or not. Raise errors.NotFound if there is none that the caller may see."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        return await _get_visible(connection, caller, memory_id)


async def read_history(resources: Resources, caller: Caller, memory_id: str) -> list[dict[str, Any]]:
    """Return what happened to a memory, oldest first. Raise errors.NotFound as `read_memory` does."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        await _get_visible(connection, caller, memory_id)
        return await history_queries.list_for_memory(connection, caller.tenant, memory_id)


async def _get_visible(connection: AsyncConnection, caller: Caller, memory_id: str) -> Memory:
    memory = await queries.get(connection, caller, memory_id)
    if memory is None:
        raise errors.NotFound(f"no memory '{memory_id}'")
    return memory


async def list_categories(resources: Resources, scope: Scope) -> list[dict[str, Any]]:
    """Return {category, count, total}, sorted by category. `total` includes the categories below it."""
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        return await scope_queries.count_categories(connection, scope)


async def list_tags(resources: Resources, scope: Scope) -> list[dict[str, Any]]:
    """Return {tag, count}, sorted by tag."""
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        return await scope_queries.count_tags(connection, scope)
