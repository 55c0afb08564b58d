"""What is known already about what turns say: the memories of a scope that are near them."""

import asyncio
from collections.abc import Sequence

from shared.conversation.turns.turn import Turn
from shared.dreams.passes import facts
from shared.foundation.roles import Role
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm import scope_queries
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.search import SearchOptions
from shared.platform.resources import Resources

MAX_MEMORIES = 100
"""Memories that are shown beside a part of the turns. Of a scope with no more, all are."""
_MAX_SEARCHES, _MAX_AT_ONCE = 60, 4
_MAX_QUERY_CHARACTERS = 1000
_PER_SEARCH = 8


async def list_known(resources: Resources, scope: Scope, turns: Sequence[Turn]) -> list[Memory]:
    """Return live and valid memories of exactly this scope that are near these turns, the nearest first.

    Those with a key, an end of their validity or an expiry stay as their callers wrote them, so they are not
    shown; nor is what waits for its enrichment.
    """
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        memories = await scope_queries.list_mergeable(tx, scope, MAX_MEMORIES + 1)
    if len(memories) > MAX_MEMORIES:
        memories = await _search(resources, scope, turns)
    return [memory for memory in memories if _is_shown(memory, scope)][:MAX_MEMORIES]


def _is_shown(memory: Memory, scope: Scope) -> bool:
    is_changeable = memory.is_deduplicated and memory.expires_at is None
    is_settled = memory.state is not MemoryState.PENDING
    return memory.scope == scope and is_changeable and is_settled and facts.is_comparable(memory)


async def _search(resources: Resources, scope: Scope, turns: Sequence[Turn]) -> list[Memory]:
    """Search by the text of each turn of a user, and return the hits by their best place in a result."""
    places = asyncio.Semaphore(_MAX_AT_ONCE)

    async def search(turn: Turn) -> list[Memory]:
        async with places:
            query, options = turn.content[:_MAX_QUERY_CHARACTERS], SearchOptions(_PER_SEARCH)
            found = await memory_search.search(resources, scope, query, MemoryFilters(), options)
            return [result.memory for result in found.results]

    user_turns = [turn for turn in turns if turn.role is Role.USER][:_MAX_SEARCHES]
    results = await asyncio.gather(*map(search, user_turns))
    by_place = [
        memory for place in range(_PER_SEARCH) for result in results for memory in result[place : place + 1]
    ]
    return list({memory.id: memory for memory in by_place}.values())
