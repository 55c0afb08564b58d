"""Find entries: the index says who might match, Postgres who they are, pure functions who is best."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, RowMapping, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.categories import EPISODES, is_anti_pattern, is_below
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.infra.postgres import is_any_of, is_any_turn_of
from shared.memory.longterm import index_document, queries
from shared.memory.longterm.filters import MemoryFilters, anti_patterns
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import READ_COLUMNS, memory
from shared.platform.resources import Resources
from shared.search.index.client import IndexHits
from shared.search.ranking import neighbours
from shared.search.ranking import rank as ranking
from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.text import bm25, tsvector
from shared.search.text.tokenizer import tokenize_query

_FALLBACK_ROWS = 500
Offered = tuple[RowMapping, Candidate]
"""A row of `entry`, and what ranking sees of it."""


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """An entry and how it scored."""

    memory: Memory
    scored: ScoredCandidate

    @classmethod
    def unscored(cls, entry: Memory) -> "MemoryResult":
        """Return an entry that no query ranked."""
        return cls(entry, ScoredCandidate(entry.id, 0.0))


@dataclass(frozen=True, slots=True)
class Results:
    """What was found, best first, with what ran and what was missing."""

    results: list[MemoryResult] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to order what matches.

    `keep_anti_pattern` reserves a place for one that matches (LT12). With `episodes` set, so many of
    them follow the others and count against no limit but their own (DR12): one search finds both.
    """

    limit: int = 20
    strategy: str = ranking.DEFAULT_STRATEGY
    min_similarity: float | None = None
    reserve_anti_pattern: bool = False
    episodes: int | None = None


async def search(
    resources: Resources, scope: Scope, query: str, criteria: MemoryFilters, wanted: SearchOptions
) -> Results:
    """Return the entries that match a query, best first.

    With the index away the words of the rows themselves are searched, marked `degraded`.
    Raises errors.Unavailable only when Postgres is away: then nothing can be shown.
    """
    if wanted.strategy not in ranking.STRATEGIES:
        raise errors.Invalid("strategy", f"must be one of {', '.join(ranking.STRATEGIES)}")
    reserve = [anti_patterns()] if wanted.reserve_anti_pattern else []
    try:
        found = await resources.search_index.search(
            scope.tenant,
            RecordKind.MEMORY,
            query,
            criteria.to_qdrant(scope),
            reserve,
            embed_query_as_is=wanted.strategy == "mean",
        )
    except errors.Unavailable as away:
        if away.dependency == "postgres":
            raise
        return await _by_rows(resources, scope, query, criteria, wanted)
    if not found.hits:
        return Results([], found.stages, found.degraded)
    return Results(
        await _best(resources, scope, query, criteria, wanted, found), found.stages, found.degraded
    )


async def _best(
    resources: Resources,
    scope: Scope,
    query: str,
    criteria: MemoryFilters,
    wanted: SearchOptions,
    found: IndexHits,
) -> list[MemoryResult]:
    """Read the hits again, as they are now, with what was said beside the best, and rank them."""
    visible = criteria.to_sql(scope)
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        hits = [hit.record_id for hit in found.hits]
        offered = _offered(
            found, await queries.select_rows(connection, *visible, is_any_of(memory.c.id, hits))
        )
        ranked = _rank(query, offered, wanted)
        if wanted.strategy == ranking.DEFAULT_STRATEGY:
            beside = await _beside(connection, visible, ranked, offered)
            ranked = _rank(query, offered := [*offered, *beside], wanted) if beside else ranked
    return _top(ranked, offered, wanted)


def _rank(query: str, offered: Sequence[Offered], wanted: SearchOptions) -> list[ScoredCandidate]:
    candidates = [candidate for _, candidate in offered]
    return ranking.rank(query, candidates, wanted.strategy, wanted.min_similarity, datetime.now(UTC))


def _offered(found: IndexHits, rows: Sequence[RowMapping]) -> list[Offered]:
    """Return the rows that a hit found as they are now; what is gone, changed or foreign falls away."""
    hits = {(hit.record_id, hit.version): hit for hit in found.hits}
    current = ((row, hits.get((row["id"], row["version"]))) for row in rows)
    return [(row, index_document.candidate(row, hit.keyword, hit.cosine)) for row, hit in current if hit]


async def _beside(
    connection: AsyncConnection,
    visible: Sequence[ColumnElement[bool]],
    ranked: Sequence[ScoredCandidate],
    offered: Sequence[Offered],
) -> list[Offered]:
    """Read the entries said next to the best hits: an answer often stands beside its question's words."""
    places = neighbours.neighbour_keys(ranked, [candidate for _, candidate in offered])
    if not places:
        return []
    here = is_any_turn_of(memory.c.source_session_id, memory.c.source_seq, places)
    known = {row["id"] for row, _ in offered}
    rows = await queries.select_rows(connection, *visible, here)
    return [(row, index_document.candidate(row, None, None)) for row in rows if row["id"] not in known]


def _top(
    ranked: Sequence[ScoredCandidate], offered: Sequence[Offered], wanted: SearchOptions
) -> list[MemoryResult]:
    rows = {row["id"]: row for row, _ in offered}
    reserved = _anti_patterns(rows.values()) if wanted.reserve_anti_pattern else set()
    episodes = _episodes(rows.values()) if wanted.episodes is not None else set()
    best = ranking.top([one for one in ranked if one.id not in episodes], wanted.limit, reserved)
    told = [one for one in ranked if one.id in episodes][: wanted.episodes]
    return [MemoryResult(Memory.from_row(rows[one.id]), one) for one in [*best, *told]]


def _anti_patterns(rows: Iterable[RowMapping]) -> set[str]:
    return {row["id"] for row in rows if is_anti_pattern(row["category"], row["tags"])}


def _episodes(rows: Iterable[RowMapping]) -> set[str]:
    return {row["id"] for row in rows if is_below(EPISODES, row["category"])}


async def _by_rows(
    resources: Resources, scope: Scope, query: str, criteria: MemoryFilters, wanted: SearchOptions
) -> Results:
    """Search without the index: the same words, weighed among the rows that hold any of them."""
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        rows = await _holding(connection, scope, query, criteria)
    candidates = [index_document.candidate(row, None, None) for row in rows]
    scores = bm25.score_texts(query, [candidate.text for candidate in candidates])
    scored = [replace(candidate, keyword=score) for candidate, score in zip(candidates, scores, strict=True)]
    offered = list(zip(rows, scored, strict=True))
    degraded = ["index"] if resources.embedder is None else ["index", "dense"]
    return Results(_top(_rank(query, offered, wanted), offered, wanted), ["postgres"], degraded)


async def _holding(
    connection: AsyncConnection, scope: Scope, query: str, criteria: MemoryFilters
) -> list[RowMapping]:
    terms = tokenize_query(query)
    if not terms:
        return []
    holds, rank = tsvector.matches_any(memory.c.search_terms, terms)
    statement = (
        select(*READ_COLUMNS)
        .where(*criteria.to_sql(scope), holds)
        .order_by(rank.desc(), memory.c.last_seen_at.desc())
        .limit(_FALLBACK_ROWS)
    )
    return list((await connection.execute(statement)).mappings())


async def list_newest(
    resources: Resources,
    scope: Scope,
    criteria: MemoryFilters,
    limit: int,
    after: tuple[datetime, str] | None = None,
) -> list[Memory]:
    """Return entries without a query, the last seen first."""
    statement = select(*READ_COLUMNS).where(*criteria.to_sql(scope))
    if after is not None:
        statement = statement.where(queries.cursor_after(*after))
    ordered = statement.order_by(memory.c.last_seen_at.desc(), memory.c.id).limit(limit)
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        return await queries.select_memories(connection, ordered)
