"""Search turns across sessions. The neighbour turns of the best hits are ranked and returned too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, FromClause

from shared.conversation.turns import index_document, queries
from shared.conversation.turns.table import turn as turn_table
from shared.conversation.turns.turn import Turn, turn_key_of
from shared.foundation import validation
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.infra.transaction import Transaction
from shared.platform.resources import Resources
from shared.search.floor import Floor
from shared.search.index import filters
from shared.search.index.client import IndexHits, IndexQuery
from shared.search.index.fallback import RowHits, RowSource
from shared.search.index.filters import Condition, field_equals
from shared.search.index.widening import search_until_enough
from shared.search.ranking import neighbours
from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.ranking.rank import Ranking
from shared.search.search_results import SearchResults

TurnKey = tuple[str, int]
_RankedTurns = tuple[list[ScoredCandidate], dict[TurnKey, Turn]]


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

    @property
    def has_time(self) -> bool:
        """Whether the turns of some times alone match."""
        return self.created_after is not None or self.created_before is not None

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

    def to_sql(self, scope: Scope, turns: FromClause = turn_table) -> list[ColumnElement[bool]]:
        """Return the filters as conditions on rows with the columns of `turn`."""
        conditions = [queries.visible(scope, turns)]
        if self.session_id is not None:
            conditions.append(turns.c.session_id == self.session_id)
        if self.except_session is not None:
            conditions.append(turns.c.session_id != self.except_session)
        if self.created_after is not None:
            conditions.append(turns.c.created_at >= self.created_after)
        if self.created_before is not None:
            conditions.append(turns.c.created_at <= self.created_before)
        return conditions


async def search(
    resources: Resources,
    scope: Scope,
    query: str,
    criteria: TurnFilters,
    limit: int,
    *,
    above_floor: bool = False,
) -> SearchResults[tuple[Turn, ScoredCandidate]]:
    """Return the turns that match a query, best first.

    `above_floor` leaves out what has nothing to do with the query, by the floor of the index. Without the
    index, the search terms in Postgres are used. Raises errors.Unavailable if Postgres is unavailable.
    """

    async def read_rows(terms: Sequence[str], max_rows: int) -> list[Turn]:
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            return await queries.list_matching(tx, terms, max_rows, *criteria.to_sql(scope))

    async def rank_hits(found: IndexHits) -> tuple[_RankedTurns, int]:
        return await _rank_hits(
            resources, scope, query, criteria, found, found.floor if above_floor else None
        )

    await resources.index_writer.finish_writes(scope.tenant)
    index_query = IndexQuery(scope.tenant, RecordKind.TURN, query, criteria.to_qdrant(scope))
    source = RowSource("postgres", read_rows, index_document.keyword_text)
    found, ranked_turns = await search_until_enough(
        resources.search_index, index_query, source, rank_hits, limit
    )
    if isinstance(found, RowHits):
        turns = _by_key([turn for turn, _ in found.rows])
        scores = {(turn.session_id, turn.seq): (score, None) for turn, score in found.rows}
        ranker = _ranking(query, None)
        ranker.add(_to_candidates(turns, scores))
        ranked_turns = ranker.latest_first(ranker.best()), turns
    ranked, turns = ranked_turns or ([], {})
    results = [(turns[turn_key_of(scored.id)], scored) for scored in ranked[:limit]]
    return SearchResults(results, found.stages, found.degraded)


async def _rank_hits(
    resources: Resources,
    scope: Scope,
    query: str,
    criteria: TurnFilters,
    found: IndexHits,
    floor: Floor | None,
) -> tuple[_RankedTurns, int]:
    """Read the turns of the hits and the neighbours of the best ones; return them and how many hits match."""
    hits = {turn_key_of(hit.record_id): (hit.keyword, hit.cosine) for hit in found.hits}
    if not hits:
        return ([], {}), 0
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        turns = _by_key(await queries.list_by_keys(tx, hits, partial(criteria.to_sql, scope)))
        ranker, candidates = _ranking(query, floor), _to_candidates(turns, hits)
        ranker.add(candidates)
        neighbour_turns: dict[TurnKey, Turn] = {}
        if not criteria.has_time:  # which might exclude them
            best = ranker.best(neighbours.MAX_HITS_WITH_NEIGHBOURS)
            neighbour_turns = await _load_neighbours(tx, scope, best, candidates)
    if neighbour_turns:
        ranker.add(_to_candidates(neighbour_turns, {}))
    return (ranker.latest_first(ranker.best()), turns | neighbour_turns), len(turns)


def _by_key(turns: Sequence[Turn]) -> dict[TurnKey, Turn]:
    return {(turn.session_id, turn.seq): turn for turn in turns}


async def _load_neighbours(
    tx: Transaction, scope: Scope, best: Sequence[ScoredCandidate], candidates: Sequence[Candidate]
) -> dict[TurnKey, Turn]:
    """Read the turns next to the best hits.

    The answer to a question is often in the turn after it and shares no words with the query.
    """
    neighbour_keys = neighbours.neighbour_keys(best, candidates)
    if not neighbour_keys:
        return {}
    conditions_on = partial(TurnFilters().to_sql, scope)
    return _by_key(await queries.list_by_keys(tx, neighbour_keys, conditions_on))


def _ranking(query: str, floor: Floor | None) -> Ranking:
    return Ranking(query, now=datetime.now(UTC), floor=floor)


def _to_candidates(turns: Mapping[TurnKey, Turn], hits: Mapping[TurnKey, Any]) -> list[Candidate]:
    """Return the ranking candidates of turns, with the scores of those that were hit."""
    return [
        index_document.candidate(turn, *hits.get(turn_key, (None, None))) for turn_key, turn in turns.items()
    ]
