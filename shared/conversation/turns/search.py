"""Search turns across sessions. The neighbour turns of the best hits are ranked and returned too."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.turns import index_document, queries
from shared.conversation.turns.table import READ_COLUMNS
from shared.conversation.turns.table import turn as turn_table
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
    """Filters, all of which a turn must meet. `except_session` excludes the current conversation."""

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
        """Return the filters as Qdrant conditions."""
        conditions = [
            *filters.scope_conditions(scope),
            *filters.in_range("created_at", self.created_after, self.created_before),
        ]
        if self.session_id is not None:
            conditions.append(field_equals("session_id", self.session_id))
        if self.except_session is not None:
            conditions.append(filters.none_of([field_equals("session_id", self.except_session)]))
        return conditions

    def to_sql(self, scope: Scope) -> list[ColumnElement[bool]]:
        """Return the filters as conditions on rows of `turn`."""
        conditions = [queries.visible(scope)]
        if self.session_id is not None:
            conditions.append(turn_table.c.session_id == self.session_id)
        if self.except_session is not None:
            conditions.append(turn_table.c.session_id != self.except_session)
        if self.created_after is not None:
            conditions.append(turn_table.c.created_at >= self.created_after)
        if self.created_before is not None:
            conditions.append(turn_table.c.created_at <= self.created_before)
        return conditions


@dataclass(frozen=True, slots=True)
class TurnResults:
    """Turns, best first, with the search stages that ran and the parts that were unavailable."""

    results: list[tuple[Turn, ScoredCandidate]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


async def search(
    resources: Resources, scope: Scope, query: str, criteria: TurnFilters, limit: int
) -> TurnResults:
    """Return the turns that match a query, best first.

    Without the index, the search terms in Postgres are used. Raises errors.Unavailable if Postgres is
    unavailable.
    """
    try:
        index_hits = await resources.search_index.search(
            scope.tenant, RecordKind.TURN, query, criteria.to_qdrant(scope)
        )
    except errors.Unavailable as error:
        if error.dependency == "postgres":
            raise
        return await _search_rows(resources, scope, query, criteria, limit)
    hits = {turn_key_of(hit.record_id): (hit.keyword, hit.cosine) for hit in index_hits.hits}
    if not hits:
        return TurnResults([], index_hits.stages, index_hits.degraded)
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        turns = _by_key(await queries.list_by_keys(connection, scope, hits, criteria.to_sql(scope)))
        ranked = _rank(query, turns, hits, list(turns))
        neighbour_turns = await _load_neighbours(connection, scope, ranked, turns, hits)
    if neighbour_turns:
        keys = _keys_to_rank(turns, neighbour_turns, criteria)
        ranked = _rank(query, turns | neighbour_turns, hits, keys)
    return _results(ranked[:limit], turns | neighbour_turns, index_hits)


def _by_key(turns: Sequence[Turn]) -> dict[TurnKey, Turn]:
    return {(turn.session_id, turn.seq): turn for turn in turns}


async def _load_neighbours(
    connection: AsyncConnection,
    scope: Scope,
    ranked: Sequence[ScoredCandidate],
    turns: dict[TurnKey, Turn],
    hits: dict[TurnKey, Any],
) -> dict[TurnKey, Turn]:
    """Read the turns next to the best hits.

    The answer to a question is often in the turn after it and shares no words with the query.
    """
    candidates = [index_document.candidate(turn, *hits[turn_key]) for turn_key, turn in turns.items()]
    neighbour_keys = neighbours.neighbour_keys(ranked, candidates)
    return _by_key(await queries.list_by_keys(connection, scope, neighbour_keys)) if neighbour_keys else {}


def _keys_to_rank(
    turns: dict[TurnKey, Turn], neighbour_turns: dict[TurnKey, Turn], criteria: TurnFilters
) -> list[TurnKey]:
    """Return the keys of the possible results: neighbours too, unless a time filter might exclude them."""
    has_time_filter = criteria.created_after is not None or criteria.created_before is not None
    return list(turns) if has_time_filter else [*turns, *neighbour_turns]


def _rank(
    query: str, turns: dict[TurnKey, Turn], hits: dict[TurnKey, Any], turn_keys: Sequence[TurnKey]
) -> list[ScoredCandidate]:
    def to_candidate(turn_key: TurnKey) -> Candidate:
        keyword, cosine = hits.get(turn_key, (None, None))
        return index_document.candidate(turns[turn_key], keyword, cosine)

    return ranking.rank(query, [to_candidate(turn_key) for turn_key in turn_keys], now=datetime.now(UTC))


def _results(
    ranked: Sequence[ScoredCandidate], turns: dict[TurnKey, Turn], index_hits: IndexHits
) -> TurnResults:
    results = [(turns[turn_key_of(scored.id)], scored) for scored in ranked]
    return TurnResults(results, index_hits.stages, index_hits.degraded)


async def _search_rows(
    resources: Resources, scope: Scope, query: str, criteria: TurnFilters, limit: int
) -> TurnResults:
    degraded = ["index"] if resources.embedder is None else ["index", "dense"]
    terms = tokenize_query(query)
    if not terms:
        return TurnResults([], ["postgres"], degraded)
    matches, rank = tsvector.matches_any(turn_table.c.search_terms, terms)
    statement = (
        select(*READ_COLUMNS)
        .where(*criteria.to_sql(scope), matches)
        .order_by(rank.desc(), turn_table.c.created_at.desc())
        .limit(_FALLBACK_ROWS)
    )
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        turns = await queries.select_turns(connection, statement)
    candidates = [index_document.candidate(turn) for turn in turns]
    scores = bm25.score_texts(query, [candidate.text for candidate in candidates])
    hits = {(turn.session_id, turn.seq): (score, None) for turn, score in zip(turns, scores, strict=True)}
    by_key = _by_key(turns)
    ranked = _rank(query, by_key, hits, list(by_key))[:limit]
    return _results(ranked, by_key, IndexHits([], ["postgres"], degraded))
