"""Read everything a turn needs, side by side; whatever is away is left out and named.

Memory never breaks a reply: a store that is down costs its block, not the context.
"""

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from shared.context import blocks
from shared.context.types import Block, ContextInputs, Request
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session, SessionKind
from shared.conversation.turns import search as turn_search
from shared.conversation.turns import window
from shared.conversation.turns.search import TurnFilters
from shared.conversation.turns.turn import Turn
from shared.foundation import errors
from shared.foundation.categories import EPISODES, is_below
from shared.foundation.scope import Scope
from shared.infra import redis as redis_client
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.search import MemoryResult, Results, SearchOptions
from shared.memory.working import keys
from shared.memory.working import queries as working_queries
from shared.memory.working.queries import WorkingMemory
from shared.memory.working.working_entry import WorkingEntryInfo
from shared.platform.resources import Resources
from shared.search.text import bm25

T = TypeVar("T")
_OUTLINES_READ = 8


async def gather(
    resources: Resources, session: Session, marks: dict[str, tuple[int, int]], request: Request
) -> ContextInputs:
    """Read recall, conversation, desks and past turns for one message."""
    gathered = ContextInputs(recalled_before=marks)
    recalled, turns, others, past = await asyncio.gather(
        _within(gathered, "recall", _recall(resources, session, request.message, gathered)),
        _within(gathered, "turns", _turns(resources, session, gathered)),
        _within(gathered, "working", _desks(resources, session, request.message)),
        _within(gathered, "past_turns", _past_turns(resources, session, request.message, gathered)),
    )
    gathered.turns = turns or []
    gathered.first_turn = session.last_seq == 0
    gathered.recalled = [one for one in recalled or [] if not is_below(EPISODES, one.memory.category)]
    gathered.episodes = [one for one in recalled or [] if is_below(EPISODES, one.memory.category)]
    gathered.other_blocks = [block for block in (past, *(others or [])) if block is not None]
    gathered.degraded = list(dict.fromkeys(gathered.degraded))
    return gathered


async def _within(gathered: ContextInputs, stage: str, reading: Awaitable[T]) -> T | None:
    """Time one part; when its store is away note it and go on without."""
    started = time.perf_counter()
    try:
        return await reading
    except errors.Unavailable as away:
        gathered.degraded.append({"qdrant": "index"}.get(away.dependency, away.dependency))
        return None
    finally:
        gathered.timings[stage] = round((time.perf_counter() - started) * 1000, 2)


async def _recall(
    resources: Resources, session: Session, message: str, gathered: ContextInputs
) -> list[MemoryResult]:
    settings = resources.settings
    wanted = SearchOptions(
        settings.recall_limit,
        settings.search_strategy,
        reserve_anti_pattern=True,
        episodes=settings.recall_episodes,
    )
    found: Results = await memory_search.search(resources, session.scope, message, MemoryFilters(), wanted)
    gathered.stages += found.stages
    gathered.degraded += found.degraded
    if found.results or session.last_seq > 0:
        return found.results
    return await _newest(resources, session.scope, gathered)


async def _newest(resources: Resources, scope: Scope, gathered: ContextInputs) -> list[MemoryResult]:
    """On a session's first turn, something is better than nothing: the newest entries."""
    entries = await memory_search.list_newest(
        resources, scope, MemoryFilters(), resources.settings.recall_newest_limit
    )
    gathered.stages.append("newest")
    return [MemoryResult.unscored(entry) for entry in entries]


async def _turns(resources: Resources, session: Session, gathered: ContextInputs) -> list[Turn]:
    count = resources.settings.context_max_turns
    held: list[Turn] | None = None
    try:
        held = await window.read_cache(resources, session.tenant, session.id, count)
    except errors.Unavailable:
        gathered.degraded.append("redis")
    return await window.load_turns(resources, session, count, held)


async def _past_turns(
    resources: Resources, session: Session, message: str, gathered: ContextInputs
) -> Block | None:
    limit = resources.settings.recall_past_turns
    if limit == 0:
        return None
    criteria = TurnFilters(except_session=session.id)
    found = await turn_search.search(resources, session.scope, message, criteria, limit)
    gathered.degraded += found.degraded
    return blocks.past_turns([turn for turn, _ in found.results])


async def _desks(resources: Resources, session: Session, message: str) -> list[Block | None]:
    own = session.namespace
    shared = ["patrol", "subagent"] if session.kind is SessionKind.SESSION else []
    table = WorkingMemory(resources.redis, resources.settings, session.tenant)
    with redis_client.failures_as_unavailable():
        found = await working_queries.list_many_prefixes(table, own, *shared, include_views=True)
    mine = blocks.working_memory([one for one in found[own] if not keys.parse_view(one.key).is_part])
    if not shared:
        return [mine]
    seen = await _visible(resources, session, [*found["patrol"], *found["subagent"]])
    patrols = [
        one for one in seen if keys.is_within(one.key, "patrol") and not keys.parse_view(one.key).is_part
    ]
    outlines = [
        one for one in seen if keys.is_within(one.key, "subagent") and keys.parse_view(one.key).outline
    ]
    return [mine, blocks.patrol(patrols), await _best_outlines(table, outlines, message)]


async def _visible(
    resources: Resources, session: Session, listings: list[WorkingEntryInfo]
) -> list[WorkingEntryInfo]:
    """Leave out desks that belong to other agents or users; a desk that nobody opened is common."""
    names = {keys.namespace_of(one.key) for one in listings}
    if not names:
        return []
    async with resources.postgres.for_tenant(session.tenant) as connection:
        owners = await session_queries.owners_of(connection, session.tenant, sorted(names))
    foreign = {name for name in names if name in owners and not _ours(session, owners[name])}
    return [one for one in listings if keys.namespace_of(one.key) not in foreign]


def _ours(session: Session, owners: list[tuple[str, str | None]]) -> bool:
    return any(agent == session.agent_id and user in (None, session.user_id) for agent, user in owners)


async def _best_outlines(
    table: WorkingMemory, outlines: list[WorkingEntryInfo], message: str
) -> Block | None:
    """Return the newest outline and, of the others, the one that fits the message best."""
    newest_first = sorted(outlines, key=lambda one: one.stored_at, reverse=True)
    chosen, others = newest_first[:1], newest_first[1 : 1 + _OUTLINES_READ]
    if others:
        with redis_client.failures_as_unavailable():
            texts = await working_queries.read_many(table, [one.key for one in others])
        readable = [one for one in others if one.key in texts]
        scores = bm25.score_texts(message, [f"{one.key}\n{texts[one.key].value}" for one in readable])
        if scores and max(scores) > 0:
            chosen.append(readable[scores.index(max(scores))])
    return blocks.subagents(chosen, len(outlines) - len(chosen))
