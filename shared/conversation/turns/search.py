"""Find turns across sessions, with the turns around them taken into account (SE9)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.turns import index_document, queries
from shared.conversation.turns.table import READ_COLUMNS, turn
from shared.conversation.turns.turn import Turn, turn_key_of
from shared.foundation import errors, validation
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.platform.resources import Resources
from shared.search.index import filters
from shared.search.index.client import IndexHits
from shared.search.index.filters import Condition, field_equals
from shared.search.ranking import neighbours
from shared.search.ranking import rank as ranking
from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.text import bm25, tsvector
from shared.search.text.tokenizer import tokenize_query

_FALLBACK_ROWS = 500
TurnKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class TurnFilters:
    """Filters, all of which must hold; `except_session` leaves the running conversation out."""

    session_id: str | None = None
    except_session: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("created_after", "created_before"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, validation.check_time(moment, name))

    def to_qdrant(self, scope: Scope) -> list[Condition]:
        """Return the conditions in the index's words."""
        wanted = [
            *filters.scope_conditions(scope),
            *filters.in_range("created_at", self.created_after, self.created_before),
        ]
        if self.session_id is not None:
            wanted.append(field_equals("session_id", self.session_id))
        if self.except_session is not None:
            wanted.append(filters.none_of([field_equals("session_id", self.except_session)]))
        return wanted

    def to_sql(self, scope: Scope) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of `turn`."""
        wanted = [queries.visible(scope)]
        if self.session_id is not None:
            wanted.append(turn.c.session_id == self.session_id)
        if self.except_session is not None:
            wanted.append(turn.c.session_id != self.except_session)
        if self.created_after is not None:
            wanted.append(turn.c.created_at >= self.created_after)
        if self.created_before is not None:
            wanted.append(turn.c.created_at <= self.created_before)
        return wanted


@dataclass(frozen=True, slots=True)
class TurnResults:
    """Turns, best first, with what ran and what was missing."""

    results: list[tuple[Turn, ScoredCandidate]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


async def search(
    resources: Resources, scope: Scope, query: str, criteria: TurnFilters, limit: int
) -> TurnResults:
    """Return the turns that match a query, best first; from the rows' own words when the index is away."""
    try:
        found = await resources.search_index.search(
            scope.tenant, RecordKind.TURN, query, criteria.to_qdrant(scope)
        )
    except errors.Unavailable as away:
        if away.dependency == "postgres":
            raise
        return await _by_rows(resources, scope, query, criteria, limit)
    hits = {turn_key_of(hit.record_id): (hit.keyword, hit.cosine) for hit in found.hits}
    if not hits:
        return TurnResults([], found.stages, found.degraded)
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        known = _by_place(await queries.list_by_keys(connection, scope, hits, criteria.to_sql(scope)))
        ranked = _ranked(query, known, hits, list(known))
        around = await _around(connection, scope, ranked, known, hits)
    if around:
        ranked = _ranked(query, known | around, hits, _offered(known, around, criteria))
    return _results(ranked[:limit], known | around, found)


def _by_place(turns: Sequence[Turn]) -> dict[TurnKey, Turn]:
    return {(one.session_id, one.seq): one for one in turns}


async def _around(
    connection: AsyncConnection,
    scope: Scope,
    ranked: Sequence[ScoredCandidate],
    known: dict[TurnKey, Turn],
    hits: dict[TurnKey, Any],
) -> dict[TurnKey, Turn]:
    """Read the turns next to the best hits: an answer often stands beside the words of its question."""
    candidates = [index_document.candidate(one, *hits[place]) for place, one in known.items()]
    wanted = neighbours.neighbour_keys(ranked, candidates)
    return _by_place(await queries.list_by_keys(connection, scope, wanted)) if wanted else {}


def _offered(known: dict[TurnKey, Turn], around: dict[TurnKey, Turn], criteria: TurnFilters) -> list[TurnKey]:
    """Return what may be answered: neighbours too, unless a filter might exclude them."""
    filtered = criteria.created_after is not None or criteria.created_before is not None
    return list(known) if filtered else [*known, *around]


def _ranked(
    query: str, turns: dict[TurnKey, Turn], hits: dict[TurnKey, Any], offered: Sequence[TurnKey]
) -> list[ScoredCandidate]:
    def offer(place: TurnKey) -> Candidate:
        keyword, cosine = hits.get(place, (None, None))
        return index_document.candidate(turns[place], keyword, cosine)

    return ranking.rank(query, [offer(place) for place in offered], now=datetime.now(UTC))


def _results(ranked: Sequence[ScoredCandidate], turns: dict[TurnKey, Turn], found: IndexHits) -> TurnResults:
    results = [(turns[turn_key_of(scored.id)], scored) for scored in ranked]
    return TurnResults(results, found.stages, found.degraded)


async def _by_rows(
    resources: Resources, scope: Scope, query: str, criteria: TurnFilters, limit: int
) -> TurnResults:
    degraded = ["index"] if resources.embedder is None else ["index", "dense"]
    terms = tokenize_query(query)
    if not terms:
        return TurnResults([], ["postgres"], degraded)
    holds, rank = tsvector.matches_any(turn.c.search_terms, terms)
    statement = (
        select(*READ_COLUMNS)
        .where(*criteria.to_sql(scope), holds)
        .order_by(rank.desc(), turn.c.created_at.desc())
        .limit(_FALLBACK_ROWS)
    )
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        turns = await queries.select_turns(connection, statement)
    candidates = [index_document.candidate(one) for one in turns]
    scores = bm25.score_texts(query, [candidate.text for candidate in candidates])
    hits = {(one.session_id, one.seq): (score, None) for one, score in zip(turns, scores, strict=True)}
    by_place = _by_place(turns)
    ranked = _ranked(query, by_place, hits, list(by_place))[:limit]
    return _results(ranked, by_place, IndexHits([], ["postgres"], degraded))
