"""Search memories: the index finds hits, Postgres has their current rows, pure functions rank them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlalchemy import RowMapping

from shared.foundation import errors
from shared.foundation.categories import EPISODES, is_anti_pattern, is_below
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.infra.transaction import Transaction
from shared.memory.longterm import evidence, hit_queries, index_document, queries, validity
from shared.memory.longterm.filters import MemoryFilters, anti_patterns
from shared.memory.longterm.fingerprint import fingerprint_of
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.memory_result import MemoryResult
from shared.platform.resources import Resources
from shared.search.floor import Floor
from shared.search.index.client import IndexHits, IndexQuery
from shared.search.index.fallback import RowHits, RowSource
from shared.search.index.filters import is_record
from shared.search.index.hits import Hit
from shared.search.index.points import DENSE
from shared.search.index.widening import search_until_enough
from shared.search.ranking import neighbours, relevance
from shared.search.ranking import rank as ranking
from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.ranking.rank import Ranking
from shared.search.search_results import SearchResults

_MAX_RARE = 1000
RowCandidate = tuple[RowMapping, Candidate]
"""A row of `memory`, and its ranking candidate."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to rank and limit what matches.

    `above_floor` leaves out what has nothing to do with the query, by the floor of the index.
    `min_similarity` replaces that floor. Without either nothing is left out.

    `reserve_anti_pattern` reserves a place for an anti-pattern that matches. If `episodes` is set, at most
    so many episodes follow the other results and do not count against `limit`. `shown` are the ids of the
    pages before: they are ranked with the others, and left out of the results.
    """

    limit: int = 20
    strategy: str = ranking.DEFAULT_STRATEGY
    min_similarity: float | None = None
    above_floor: bool = False
    reserve_anti_pattern: bool = False
    episodes: int | None = None
    shown: frozenset[str] = frozenset()


async def search(
    resources: Resources, scope: Scope, query: str, filters: MemoryFilters, options: SearchOptions
) -> SearchResults[MemoryResult]:
    """Return the memories that match a query, best first.

    While the index is unavailable, the search terms of the rows are searched, and `degraded` says so.
    Raises errors.Invalid for an unknown strategy, and errors.Unavailable only while Postgres is.
    """

    async def read_rows(terms: Sequence[str], max_rows: int) -> list[RowMapping]:
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            most = max_rows + len(options.shown)
            return await hit_queries.list_matching(tx, scope, filters, terms, most)

    async def rank_hits(found: IndexHits) -> tuple[list[MemoryResult], int]:
        return await _rank_hits(resources, scope, query, filters, options, found)

    index_query = _index_query(scope, query, filters, options)
    rare_ids = await _list_rare_ids(resources, scope, filters)
    if rare_ids is not None:
        index_query = replace(index_query, conditions=[*index_query.conditions, is_record(rare_ids)])
    source = RowSource("postgres", read_rows, index_document.keywords_of_row)
    found, results = await search_until_enough(
        resources.search_index, index_query, source, rank_hits, options.limit
    )
    if isinstance(found, RowHits):
        candidates = [(row, index_document.candidate(row, score, None)) for row, score in found.rows]
        repeated_ids = _repeated_ids(candidates)
        candidates = [(row, candidate) for row, candidate in candidates if candidate.id not in repeated_ids]
        ranker = _ranking(query, options, None)
        ranker.add([candidate for _, candidate in candidates])
        ranked = ranker.latest_first(ranker.best(), validity.latest(filters.as_of))
        best = _best(ranked, candidates, options, None)
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            results = await _read_results(tx, best, {})
    return SearchResults(results or [], found.stages, found.degraded)


async def _list_rare_ids(resources: Resources, scope: Scope, filters: MemoryFilters) -> list[str] | None:
    """Return the ids of what can match, if that is little and the index does not know all of the filters.

    Its hits alone would be many that do not match, and perhaps none that do.
    """
    if filters.is_known_to_index:
        return None
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        ids = await queries.list_ids(tx, _MAX_RARE + 1, *filters.to_sql(scope))
    return ids if len(ids) <= _MAX_RARE else None


def _index_query(scope: Scope, query: str, filters: MemoryFilters, options: SearchOptions) -> IndexQuery:
    """Return what the index is asked. Raises errors.Invalid for an unknown strategy."""
    if options.strategy not in ranking.STRATEGIES:
        raise errors.Invalid("strategy", f"must be one of {', '.join(ranking.STRATEGIES)}")
    return IndexQuery(
        scope.tenant,
        RecordKind.MEMORY,
        query,
        filters.to_qdrant(scope),
        evidence=filters.evidence_to_qdrant(scope),
        reserve=[anti_patterns()] if options.reserve_anti_pattern else [],
        embed_as_is=options.strategy == "mean",
        more_hits=len(options.shown),
    )


async def _rank_hits(
    resources: Resources,
    scope: Scope,
    query: str,
    filters: MemoryFilters,
    options: SearchOptions,
    found: IndexHits,
) -> tuple[list[MemoryResult], int]:
    """Read the current rows of the hits and the neighbours of the best ones, and rank them.

    Return the best, and how many of all take a place that were not shown; where episodes have places of
    their own, without them.
    """
    hits, floor = found.hits, found.floor
    if not hits and not found.evidence:
        return [], 0
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        evidence_hits = await evidence.read(tx, scope, filters, found.evidence)
        ids = {hit.record_id for hit in hits} | evidence.successor_ids(evidence_hits)
        rows = await hit_queries.list_hits(tx, scope, filters, sorted(ids))
        candidates = _current_candidates(hits, rows)
        own_count = len(candidates)
        by_evidence = evidence.candidates(query, evidence_hits, rows, hits)
        candidates += [(item.row, item.candidate) for item in by_evidence]
        hidden_ids = _hidden_ids(candidates, options)
        # If nothing is relevant, worse hits are not either: then all that match count.
        count = len({candidate.id for _, candidate in candidates} - hidden_ids)
        ranker = _ranking(query, options, floor if options.above_floor else None)
        ranker.add([candidate for _, candidate in candidates])
        if options.strategy == ranking.DEFAULT_STRATEGY:
            best = ranker.best(neighbours.MAX_HITS_WITH_NEIGHBOURS)
            neighbour_candidates = await _read_neighbours(tx, scope, filters, best, candidates)
            if neighbour_candidates:
                candidates += neighbour_candidates
                ranker.add([candidate for _, candidate in neighbour_candidates])
        repeated_ids = _repeated_ids(candidates)
        distinct = [scored for scored in evidence.collapsed(ranker.best()) if scored.id not in repeated_ids]
        ranked = ranker.latest_first(distinct, validity.latest(filters.as_of))
        if ranker.is_any_relevant:
            count = _count_places(found, ranker, [scored.id for scored in ranked], hidden_ids)
        clearer = {own_count + i: item.evidence_id for i, item in enumerate(by_evidence) if item.is_clearer}
        return await _read_results(tx, _best(ranked, candidates, options, floor), clearer), count


def _count_places(
    found: IndexHits, ranker: Ranking, ranked_ids: Sequence[str], hidden_ids: frozenset[str]
) -> int:
    """Return how many of the ranked take a place, and note if the vectors left are too far away for one."""
    lowest = found.cut_channels.get(DENSE)
    if lowest is not None and not ranker.counts_by_cosine(lowest):
        del found.cut_channels[DENSE]
    return sum(id_ not in hidden_ids for id_ in ranked_ids)


async def _read_results(
    tx: Transaction, best: Sequence[ScoredCandidate], clearer: Mapping[int, str]
) -> list[MemoryResult]:
    """Read the whole rows of the best alone; one that was deleted meanwhile is left out.

    `clearer` has, by position, the ids of the evidence whose text is shown, unless it was deleted, too.
    """
    shown = {scored.id: clearer[scored.position] for scored in best if scored.position in clearer}
    memories = await queries.read(tx, list({*(scored.id for scored in best), *shown.values()}))
    by_id = {memory.id: memory for memory in memories}
    return [
        MemoryResult(by_id[scored.id], scored, evidence.text_of(by_id.get(shown.get(scored.id, ""))))
        for scored in best
        if scored.id in by_id
    ]


def _ranking(query: str, options: SearchOptions, floor: Floor | None) -> Ranking:
    return Ranking(query, options.strategy, options.min_similarity, datetime.now(UTC), floor)


def _current_candidates(hits: Sequence[Hit], rows: Sequence[RowMapping]) -> list[RowCandidate]:
    """Return the rows whose current version was hit. A hit of an older version proves nothing."""
    by_version = {(hit.record_id, hit.version): hit for hit in hits}
    rows_with_hits = ((row, by_version.get((row["id"], row["version"]))) for row in rows)
    return [
        (row, index_document.candidate(row, hit.keyword, hit.cosine)) for row, hit in rows_with_hits if hit
    ]


def _hidden_ids(candidates: Sequence[RowCandidate], options: SearchOptions) -> frozenset[str]:
    """Return the ids of the candidates that take no place among the `limit` results."""
    return options.shown if options.episodes is None else options.shown | _episode_ids(candidates)


def _repeated_ids(candidates: Sequence[RowCandidate]) -> set[str]:
    """Return the ids of the common memories that a user's own memory among the candidates repeats."""
    own = {row["fingerprint"] for row, candidate in candidates if candidate.owner is not None}
    if not own:
        return set()
    return {
        candidate.id for row, candidate in candidates if candidate.owner is None and row["fingerprint"] in own
    }


async def _read_neighbours(
    tx: Transaction,
    scope: Scope,
    filters: MemoryFilters,
    best: Sequence[ScoredCandidate],
    row_candidates: Sequence[RowCandidate],
) -> list[RowCandidate]:
    """Read the memories of the turns beside the best hits: an answer often follows its question there."""
    turn_keys = neighbours.neighbour_keys(best, [candidate for _, candidate in row_candidates])
    if not turn_keys:
        return []
    known_ids = {row["id"] for row, _ in row_candidates}
    rows = await hit_queries.list_at_turns(tx, scope, filters, turn_keys)
    return [(row, index_document.candidate(row, None, None)) for row in rows if row["id"] not in known_ids]


def _best(
    ranked: Sequence[ScoredCandidate],
    row_candidates: Sequence[RowCandidate],
    options: SearchOptions,
    floor: Floor | None,
) -> list[ScoredCandidate]:
    reserved_ids = _anti_pattern_ids(row_candidates, floor) if options.reserve_anti_pattern else set()
    hidden_ids = _hidden_ids(row_candidates, options)
    others = [scored for scored in ranked if scored.id not in hidden_ids]
    best = ranking.top(others, options.limit, reserved_ids)
    if options.episodes is None:
        return best
    episode_ids = _episode_ids(row_candidates)
    return [*best, *[scored for scored in ranked if scored.id in episode_ids][: options.episodes]]


def _anti_pattern_ids(row_candidates: Iterable[RowCandidate], floor: Floor | None) -> set[str]:
    """Return the ids of the anti-patterns that match the query by themselves."""
    return {
        candidate.id
        for row, candidate in row_candidates
        if is_anti_pattern(row["category"], row["tags"]) and relevance.is_match(candidate, floor)
    }


def _episode_ids(row_candidates: Sequence[RowCandidate]) -> frozenset[str]:
    return frozenset(
        [candidate.id for row, candidate in row_candidates if is_below(EPISODES, row["category"])]
    )


async def list_newest(
    resources: Resources,
    scope: Scope,
    filters: MemoryFilters,
    limit: int,
    after: tuple[datetime, str] | None = None,
) -> list[Memory]:
    """Return memories without a query, the last seen first, from the position (last seen, id) `after` on."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.list_newest(tx, limit, after, *filters.to_sql(scope))


async def recall_newest(
    resources: Resources, scope: Scope, filters: MemoryFilters, limit: int
) -> list[Memory]:
    """Return the last seen memories, without the common ones that a user's own among them repeats."""
    # Each own memory can repeat one common memory, so of twice as many enough remain.
    memories = await list_newest(resources, scope, filters, 2 * limit)
    own = {fingerprint_of(memory) for memory in memories if memory.user_id is not None}
    return [memory for memory in memories if memory.user_id is not None or fingerprint_of(memory) not in own][
        :limit
    ]
