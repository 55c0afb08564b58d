"""Read everything that the context of a turn needs, concurrently.

If a database is unavailable, its block is left out and `degraded` names it. The context is built from
the other inputs.
"""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from shared.context import blocks, rivals, shared_entries, skills
from shared.context.queries import SessionInputs
from shared.context.request import Request
from shared.context.types import MEMORY_BLOCKS, Block, BlockKind, ContextInputs, SkillInputs
from shared.conversation.scratchpad import cache as scratchpad_cache
from shared.conversation.sessions import namespace_queries
from shared.conversation.sessions.session import Session, SessionKind
from shared.conversation.turns import search as turn_search
from shared.conversation.turns import window, window_start
from shared.conversation.turns.search import TurnFilters
from shared.conversation.turns.turn import Turn
from shared.conversation.turns.window import CachedTurn
from shared.foundation import errors
from shared.foundation.categories import EPISODES, is_below
from shared.foundation.roles import Role
from shared.foundation.scope import Scope
from shared.infra import redis as redis_client
from shared.memory.graph import read as graph_read
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.memory_result import MemoryResult
from shared.memory.longterm.search import SearchOptions
from shared.memory.working import keys
from shared.memory.working import queries as working_queries
from shared.memory.working.working_entry import WorkingEntryInfo
from shared.memory.working.working_memory import WorkingMemory
from shared.platform.auth.rights import Owner
from shared.platform.resources import Resources

T = TypeVar("T")
_PAST_TURNS_BY_NAME = 5
"""Past turns that are recalled for a request that names their block, if the setting says none."""


async def gather(
    resources: Resources, session: Session, found: SessionInputs, request: Request
) -> ContextInputs:
    """Return recalled memories, the conversation, the session's notes and past turns for one message."""
    step = resources.settings.context_window_step
    inputs = ContextInputs(recalled_before=found.recalled_before, window_step=step)
    # In two groups, because the types of at most six results are known.
    (results, turns, working_blocks, graph), (past_turns, scratchpad, found_skills) = await asyncio.gather(
        asyncio.gather(
            _timed(inputs, "recall", _recall(resources, session, request, inputs)),
            _timed(inputs, "turns", _read_turns(resources, session, inputs)),
            _timed(inputs, "working", _read_working_memory(resources, session, request)),
            _timed(inputs, "graph", _read_graph(resources, session, found, request)),
        ),
        asyncio.gather(
            _timed(inputs, "past_turns", _search_past_turns(resources, session, request, inputs)),
            _timed(inputs, "scratchpad", _read_scratchpad(resources, session, found, request, inputs)),
            _timed(inputs, "skills", skills.find(resources, session, found, request, inputs)),
        ),
    )
    inputs.skills = found_skills or SkillInputs()
    is_reported = not request.record_turn and _is_last_turn(request.message, turns or [])
    inputs.turns = (turns or [])[:-1] if is_reported else turns or []
    inputs.first_turn = session.turn_count == int(is_reported)
    if results == [] and inputs.first_turn and request.options.shows(BlockKind.RECALLED):
        results = await _timed(inputs, "newest", _list_newest(resources, session.scope, request, inputs))
    is_episode = {result.memory.id: is_below(EPISODES, result.memory.category) for result in results or []}
    facts = [result for result in results or [] if not is_episode[result.memory.id]]
    episodes = [result for result in results or [] if is_episode[result.memory.id]]
    inputs.recalled = facts if request.options.shows(BlockKind.RECALLED) else []
    inputs.episodes = episodes if request.options.shows(BlockKind.EPISODES) else []
    other_blocks = (graph, past_turns, scratchpad, *(working_blocks or []))
    inputs.other_blocks = [block for block in other_blocks if block is not None]
    inputs.degraded = list(dict.fromkeys(inputs.degraded))
    return inputs


async def _timed(inputs: ContextInputs, stage: str, reading: Awaitable[T]) -> T | None:
    """Await one part and note its time; if its database is unavailable, note that and return None."""
    started = time.perf_counter()
    try:
        return await reading
    except errors.Unavailable as error:
        inputs.degraded.append({"qdrant": "index"}.get(error.dependency, error.dependency))
        return None
    finally:
        inputs.timings_ms[stage] = round((time.perf_counter() - started) * 1000, 2)


async def _recall(
    resources: Resources, session: Session, request: Request, inputs: ContextInputs
) -> list[MemoryResult]:
    if not any(map(request.options.shows, MEMORY_BLOCKS)):
        return []
    settings, chosen = resources.settings, request.options
    options = SearchOptions(
        chosen.limit or settings.recall_limit,
        settings.search_strategy,
        chosen.min_similarity,
        above_floor=True,
        reserve_anti_pattern=True,
        episodes=settings.recall_episodes,
    )
    results = await memory_search.search(resources, session.scope, request.message, chosen.filters, options)
    inputs.stages += results.stages
    inputs.degraded += results.degraded
    return await rivals.with_rivals(resources, session.scope, results.results)


async def _read_graph(
    resources: Resources, session: Session, found: SessionInputs, request: Request
) -> Block | None:
    """Return what is connected with the entities that the message names."""
    settings = resources.settings
    is_shown = settings.context_graph_triples and request.options.shows(BlockKind.GRAPH)
    if not is_shown or not found.has_entities:
        return None
    steps = await graph_read.connected(
        resources,
        session.scope,
        request.message,
        hops=settings.context_graph_hops,
        limit=settings.context_graph_triples,
    )
    return blocks.graph(steps)


def _is_last_turn(message: str, turns: Sequence[Turn]) -> bool:
    """Tell whether the caller has already reported the current message as a turn."""
    return bool(turns) and turns[-1].role is Role.USER and turns[-1].content == message


async def _list_newest(
    resources: Resources, scope: Scope, request: Request, inputs: ContextInputs
) -> list[MemoryResult]:
    """Return the newest memories, for the first turn of a session to which no memory matches."""
    limit = min(
        resources.settings.recall_newest_limit, request.options.limit or resources.settings.recall_limit
    )
    memories = await memory_search.recall_newest(resources, scope, request.options.filters, limit)
    inputs.stages.append("newest")
    results = [MemoryResult.unscored(memory) for memory in memories]
    return await rivals.with_rivals(resources, scope, results)


async def _read_turns(resources: Resources, session: Session, inputs: ContextInputs) -> list[Turn]:
    count = window_start.max_replayed(resources.settings, session)
    if count == 0:
        return []
    cached_turns: list[CachedTurn] | None = None
    try:
        cached_turns = await window.read_cache(resources, session.tenant, session.id, count)
    except errors.Unavailable:
        inputs.degraded.append("redis")
    turns = await window.load_turns(resources, session, count, cached_turns)
    return window_start.within(session, turns)


async def _search_past_turns(
    resources: Resources, session: Session, request: Request, inputs: ContextInputs
) -> Block | None:
    limit = resources.settings.recall_past_turns
    if request.options.names(BlockKind.PAST_TURNS):
        limit = limit or _PAST_TURNS_BY_NAME
    if limit == 0 or not request.options.shows(BlockKind.PAST_TURNS):
        return None
    filters = TurnFilters(except_session=session.id)
    results = await turn_search.search(
        resources, session.scope, request.message, filters, limit, above_floor=True
    )
    inputs.degraded += results.degraded
    return blocks.past_turns([turn for turn, _ in results.results])


async def _read_scratchpad(
    resources: Resources, session: Session, found: SessionInputs, request: Request, inputs: ContextInputs
) -> Block | None:
    if not request.options.shows(BlockKind.SCRATCHPAD):
        return None
    snippets, degraded = await scratchpad_cache.load(resources, session, found.scratchpad_revision)
    inputs.degraded += degraded
    return blocks.scratchpad(snippets)


async def _read_working_memory(
    resources: Resources, session: Session, request: Request
) -> list[Block | None]:
    prefixes = _working_prefixes(session, request)
    if not prefixes:
        return []
    working_memory = WorkingMemory.from_resources(resources, session.tenant)
    with redis_client.failures_as_unavailable():
        infos = await working_queries.list_many_prefixes(working_memory, *prefixes, include_views=True)
    # The session's own namespace too: a patrol's name may belong to another by now.
    visible = await _select_visible(resources, session, [info for group in infos.values() for info in group])
    own = [info for info in visible if keys.is_within(info.key, session.namespace) and not _is_part(info)]
    own_block = blocks.working_memory(own)
    if session.kind is not SessionKind.SESSION:
        return [own_block]
    patrols = [info for info in visible if keys.is_within(info.key, "patrol") and not _is_part(info)]
    outlines = [
        info for info in visible if keys.is_within(info.key, "subagent") and keys.parse_view(info.key).outline
    ]
    return [
        own_block,
        await shared_entries.patrol_block(resources, session.tenant, patrols, request.message),
        await shared_entries.subagent_block(resources, session.tenant, outlines, request.message),
    ]


def _working_prefixes(session: Session, request: Request) -> list[str]:
    """Return where the entries lie that the context lists. A patrol or subagent is shown only its own."""
    prefixes = {BlockKind.WORKING_MEMORY: session.namespace}
    if session.kind is SessionKind.SESSION:
        prefixes |= {BlockKind.PATROL: "patrol", BlockKind.SUBAGENTS: "subagent"}
    return [prefix for kind, prefix in prefixes.items() if request.options.shows(kind)]


def _is_part(info: WorkingEntryInfo) -> bool:
    return keys.parse_view(info.key).is_part


async def _select_visible(
    resources: Resources, session: Session, infos: list[WorkingEntryInfo]
) -> list[WorkingEntryInfo]:
    """Return the entries outside the namespaces of other agents' or users' sessions.

    A namespace that nobody has opened is common to all.
    """
    namespaces = {_namespace_of(info) for info in infos}
    if not namespaces:
        return []
    async with resources.postgres.for_tenant(session.tenant) as tx:
        owners = await namespace_queries.owners_of(tx, sorted(namespaces))
    return [info for info in infos if _is_visible(session, owners[_namespace_of(info)])]


def _namespace_of(info: WorkingEntryInfo) -> str:
    """Return the namespace of an entry; a part of a large value is in that of the whole."""
    return keys.namespace_of(keys.parse_view(info.key).base)


def _is_visible(session: Session, owner: Owner) -> bool:
    is_of_agent = owner.agent_id in (None, session.agent_id)
    return is_of_agent and owner.user_id in (None, session.user_id) and not owner.is_deleted
