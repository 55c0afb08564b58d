"""Find the memories that are deleted together with others, because they say the same."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from shared.infra.transaction import Transaction
from shared.memory.longterm import maintenance_queries, matching_queries, queries


async def with_relatives(tx: Transaction, ids: Collection[str]) -> set[str]:
    """Return memories and the others that go with them.

    Those are the memories that were made from nothing but archived ones of these, and the archived memories
    that any of them was made from.
    """
    archived_ids = await matching_queries.list_archived(tx, ids)
    found = {*ids, *await _closure(archived_ids, partial(queries.list_derived_only_from, tx))}
    return await _closure(found, partial(maintenance_queries.list_archived_sources, tx))


async def _closure(
    ids: Collection[str], find_next: Callable[[Sequence[str]], Awaitable[Sequence[str]]]
) -> set[str]:
    """Return ids with those that one or more steps find from them."""
    found, new_ids = set(ids), set(ids)
    while new_ids:
        new_ids = set(await find_next(sorted(found))) - found
        found |= new_ids
    return found
