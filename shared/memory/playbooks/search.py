"""Find promoted playbooks: by the flow, by the same words, or by a query that means the same.

A query means the same if the cosine of both is at least 0.80. Without an embedding model, the same words in
the same order count alone. The best match is written to the scratchpad of the session that asks, before the
answer is sent: the skill that runs next finds it there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from shared.conversation.scratchpad import cache
from shared.conversation.scratchpad import write as scratchpad_write
from shared.conversation.scratchpad.snippet import MAX_CONTENT
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.foundation import errors, validation
from shared.foundation.origin import Origin
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import RecordKind
from shared.infra.postgres import visible_scope
from shared.memory.playbooks import queries, settle
from shared.memory.playbooks.playbook import MAX_USER_QUERY, Playbook, words_digest
from shared.memory.playbooks.record import Place, resolve
from shared.memory.playbooks.record_type import PLAYBOOK
from shared.memory.playbooks.table import playbook as playbook_table
from shared.platform.auth.rights import Action
from shared.platform.resources import Resources
from shared.search.index import filters
from shared.search.index.client import IndexQuery
from shared.search.index.points import DENSE

MIN_COSINE = 0.80
"""The cosine of two queries from which on they mean the same."""
_MAX_QUOTED = 300


class Because(StrEnum):
    """Why a playbook matches."""

    FLOW = "flow"
    SAME_WORDS = "same_words"
    SIMILAR_QUERY = "similar_query"


@dataclass(frozen=True, slots=True)
class PlaybookQuery:
    """What is searched: a flow, a user's query, or both. Of both, one is enough."""

    flow: str | None
    query: str | None
    limit: int

    def validated(self) -> "PlaybookQuery":
        """Return the query; raise errors.Invalid that names the field and the rule."""
        if self.flow is None and self.query is None:
            raise errors.Invalid("query", "either a flow or a query must be given")
        if self.flow is not None:
            validation.check_technical_id(self.flow, "flow")
        if self.query is not None:
            validation.check_text(self.query, "query", MAX_USER_QUERY)
        return self


@dataclass(frozen=True, slots=True)
class Match:
    """A playbook that was found. `score` is 1 for the flow and the same words, and the cosine otherwise."""

    playbook: Playbook
    because: tuple[Because, ...]
    score: float


@dataclass(frozen=True, slots=True)
class FoundPlaybooks:
    """Matches, best first; what ran, what was unavailable, and the snippet written for the session."""

    matches: list[Match]
    stages: list[str]
    degraded: list[str]
    snippet_id: str | None = None


async def search(resources: Resources, caller: Caller, place: Place, query: PlaybookQuery) -> FoundPlaybooks:
    """Return the promoted playbooks that match a validated query, best first.

    In a session, the best one is written to its scratchpad: that needs the right to write. Raises as
    `record.resolve` does.
    """
    if place.session_id is not None:
        caller.require_right("write")
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        scope, session = await resolve(tx, resources, caller, place, Action.READ)
    await settle.settle_visible(resources, scope)
    found = await _find(resources, scope, query)
    if session is None or not found.matches:
        return found
    return await _note_best(resources, session, found)


async def _note_best(resources: Resources, session: Session, found: FoundPlaybooks) -> FoundPlaybooks:
    """Write the best match to the scratchpad of a session, unless it has been deleted meanwhile."""
    best, tenant = found.matches[0].playbook, session.tenant
    async with resources.postgres.for_tenant(tenant) as tx:
        is_there = bool(await session_queries.lock(tx, [session.id]))
        playbook = await queries.get(tx, best.id, lock=True)
        if not is_there or playbook is None:
            return found
        written = await scratchpad_write.note(
            tx,
            resources.settings,
            session,
            as_snippet(playbook),
            Origin.derived([playbook.origin.trust]),
            playbook.id,
        )
    degraded = [*found.degraded, *await cache.store(resources, session, written.snippets)]
    return replace(found, degraded=degraded, snippet_id=written.snippet.id)


async def _find(resources: Resources, scope: Scope, query: PlaybookQuery) -> FoundPlaybooks:
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        playbooks = await queries.list_promoted(tx, scope, query.limit, flow=query.flow, query=query.query)
    similar = await _find_similar(resources, scope, query.query)
    cosines = {match.playbook.id: match.score for match in similar.matches}
    by_id = {playbook.id: playbook for playbook in playbooks}
    by_id |= {match.playbook.id: match.playbook for match in similar.matches}
    matches = [_match(playbook, query, cosines.get(playbook.id)) for playbook in by_id.values()]
    stages = [name for name, given in (("flow", query.flow), ("words", query.query)) if given is not None]
    best = sorted(matches, key=_rank, reverse=True)[: query.limit]
    return FoundPlaybooks(best, [*stages, *similar.stages], similar.degraded)


def _match(playbook: Playbook, query: PlaybookQuery, cosine: float | None) -> Match:
    has_words = query.query is not None and words_digest(query.query) == words_digest(playbook.user_query)
    reasons = {
        Because.FLOW: playbook.flow_dact == query.flow,
        Because.SAME_WORDS: has_words,
        Because.SIMILAR_QUERY: cosine is not None and not has_words,
    }
    because = tuple(reason for reason, holds in reasons.items() if holds)
    is_exact = because[0] is not Because.SIMILAR_QUERY
    return Match(playbook, because, 1.0 if is_exact or cosine is None else cosine)


def _rank(match: Match) -> tuple[Any, ...]:
    return len(match.because), match.score, Because.FLOW in match.because, match.playbook.created_at


async def _find_similar(resources: Resources, scope: Scope, query: str | None) -> FoundPlaybooks:
    """Return the playbooks whose query means the same, if there is an embedding model."""
    index = resources.search_index
    if query is None or index.embedder is None:
        return FoundPlaybooks([], [], [])
    conditions = filters.scope_conditions(scope)
    try:
        found = await index.search(
            IndexQuery(scope.tenant, RecordKind.PLAYBOOK, query, conditions, embed_as_is=True)
        )
    except errors.Unavailable as error:
        if error.dependency == "postgres":
            raise
        return FoundPlaybooks([], [], ["index", DENSE])
    cosines = {hit.record_id: hit.cosine for hit in found.hits if (hit.cosine or 0.0) >= MIN_COSINE}
    matches = await _read(resources, scope, list(cosines))
    stages = [stage for stage in found.stages if stage == DENSE]
    similar = [Match(playbook, (Because.SIMILAR_QUERY,), cosines[playbook.id] or 0.0) for playbook in matches]
    return FoundPlaybooks(similar, stages, found.degraded)


async def _read(resources: Resources, scope: Scope, ids: Sequence[str]) -> list[Playbook]:
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        where = (visible_scope(playbook_table, scope), playbook_table.c.promoted)
        return list((await PLAYBOOK.read_by_ids(tx, ids, *where)).values())


def as_snippet(playbook: Playbook) -> str:
    """Return a playbook as a snippet: what was asked, which tools were called in which order, and the end."""
    calls = [
        f"{position}. {call.tool_id} {_quoted(call.parameters)}"
        for position, call in enumerate(playbook.tool_calls, start=1)
    ]
    parts = [
        f"Playbook for {playbook.flow_dact} ({playbook.outcome}).",
        f"Asked: {playbook.user_query[:_MAX_QUOTED]}",
        f"Slots: {_quoted(playbook.slots)}",
        *(["Tools, in this order:", *calls] if calls else []),
    ]
    return "\n".join(parts)[:MAX_CONTENT]


def _quoted(data: dict[str, Any]) -> str:
    return orjson.dumps(data).decode()[:_MAX_QUOTED]
