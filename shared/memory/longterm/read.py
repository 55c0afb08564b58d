"""Read single memories, their history, and the categories and tags of a scope."""

from collections.abc import Sequence
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres import is_any_of
from shared.infra.transaction import Transaction
from shared.memory.longterm import history_queries, queries, scope_queries
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import memory as memory_table
from shared.platform.resources import Resources


async def read_memory(resources: Resources, caller: Caller, memory_id: str) -> Memory:
    """Return a memory, archived or not. Raise errors.NotFound if there is none that the caller may see."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await _get_visible(tx, caller, memory_id)


async def list_visible(resources: Resources, scope: Scope, memory_ids: Sequence[str]) -> list[Memory]:
    """Return those of these memories that are live and valid and that the scope sees, the last seen first."""
    where = (*MemoryFilters().to_sql(scope), is_any_of(memory_table.c.id, memory_ids))
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.list_newest(tx, len(memory_ids), None, *where)


async def read_history(resources: Resources, caller: Caller, memory_id: str) -> list[dict[str, Any]]:
    """Return what happened to a memory, oldest first. Raise errors.NotFound as `read_memory` does."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        await _get_visible(tx, caller, memory_id)
        return await history_queries.list_for_memory(tx, memory_id)


async def _get_visible(tx: Transaction, caller: Caller, memory_id: str) -> Memory:
    memory = await queries.get(tx, caller, memory_id)
    if memory is None:
        raise errors.NotFound(f"no memory '{memory_id}'")
    return memory


async def list_categories(resources: Resources, scope: Scope) -> list[dict[str, Any]]:
    """Return {category, count, total}, sorted by category. `total` includes the categories below it."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await scope_queries.count_categories(tx, scope)


async def list_tags(resources: Resources, scope: Scope) -> list[dict[str, Any]]:
    """Return {tag, count}, sorted by tag."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await scope_queries.count_tags(tx, scope)
