"""Find entries: the index says who might match, Postgres who they are, pure functions who is best."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from shared import errors
from shared.index import lexical, neighbours, ranking, rowwords
from shared.index.candidate import Candidate, Scored
from shared.index.points import matches
from shared.index.search import Found
from shared.index.words import query_words
from shared.longterm import document, store
from shared.longterm.criteria import Criteria
from shared.longterm.record import Entry
from shared.longterm.table import entry
from shared.resources import Resources
from shared.scope import Scope
from shared.stages import Kind

ANTI_PATTERNS = "anti-patterns"
_FALLBACK_ROWS = 500


@dataclass(frozen=True, slots=True)
class Result:
    """An entry and how it scored."""

    entry: Entry
    scored: Scored

    @classmethod
    def unscored(cls, entry: Entry) -> "Result":
        """Return an entry that no query ranked."""
        return cls(entry, Scored(entry.id, 0.0))


@dataclass(frozen=True, slots=True)
class Results:
    """What was found, best first, with what ran and what was missing."""

    results: list[Result] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ranking:
    """How to order what matches. `keep_anti_pattern` reserves a place for one that matches (LT12)."""

    limit: int = 20
    strategy: str = ranking.DEFAULT_STRATEGY
    min_similarity: float | None = None
    keep_anti_pattern: bool = False


async def search(
    resources: Resources, scope: Scope, query: str, criteria: Criteria, wanted: Ranking
) -> Results:
    """Return the entries that match a query, best first.

    With the index away the words of the rows themselves are searched, marked `degraded`.
    Raises errors.Unavailable only when Postgres is away: then nothing can be shown.
    """
    if wanted.strategy not in ranking.STRATEGIES:
        raise errors.Invalid("strategy", f"must be one of {', '.join(ranking.STRATEGIES)}")
    reserve = [matches("categories", ANTI_PATTERNS)] if wanted.keep_anti_pattern else []
    try:
        found = await resources.index.find(
            scope.tenant,
            Kind.MEMORY,
            query,
            criteria.for_index(scope),
            reserve,
            literal=wanted.strategy == "mean",
        )
    except errors.Unavailable as away:
        if away.dependency == "postgres":
            raise
        return await _by_rows(resources, scope, query, criteria, wanted)
    rows, candidates = await _read(resources, scope, criteria, found)
    ranked = _rank(query, candidates, wanted)
    if wanted.strategy == ranking.DEFAULT_STRATEGY:
        beside = await _beside(resources, scope, criteria, ranked, candidates)
        if beside:
            rows |= {one.id: one for one in beside}
            candidates += [document.candidate(one, None, None) for one in beside]
            ranked = _rank(query, candidates, wanted)
    return Results(_top(ranked, rows, wanted), found.stages, found.degraded)


def _rank(query: str, candidates: Sequence[Candidate], wanted: Ranking) -> list[Scored]:
    return ranking.rank(query, candidates, wanted.strategy, wanted.min_similarity, datetime.now(UTC))


async def _beside(
    resources: Resources,
    scope: Scope,
    criteria: Criteria,
    ranked: Sequence[Scored],
    candidates: Sequence[Candidate],
) -> list[Entry]:
    """Read the entries said next to the best hits: an answer often stands beside its question's words."""
    places = neighbours.wanted(ranked, candidates)
    if not places:
        return []
    here = tuple_(entry.c.source_session, entry.c.source_seq).in_(places)
    known = entry.c.id.not_in([candidate.id for candidate in candidates])
    async with resources.postgres.tenant(scope.tenant) as connection:
        statement = select(entry).where(*criteria.for_rows(scope), here, known)
        return await store.select_entries(connection, statement)


async def _read(
    resources: Resources, scope: Scope, criteria: Criteria, found: Found
) -> tuple[dict[str, Entry], list[Candidate]]:
    """Read the hits again, as they are now; what is gone, changed or foreign falls away."""
    if not found.hits:
        return {}, []
    named = entry.c.id.in_({hit.ref for hit in found.hits})
    statement = select(entry).where(*criteria.for_rows(scope), named)
    async with resources.postgres.tenant(scope.tenant) as connection:
        entries = await store.select_entries(connection, statement)
    current = _current(found, entries)
    rows = {one.id: one for one in entries if one.id in current}
    return rows, [document.candidate(one, *current[one.id]) for one in rows.values()]


def _current(found: Found, entries: Sequence[Entry]) -> dict[str, tuple[float | None, float | None]]:
    """Return the scores of those hits that found the version that the row has now."""
    versions = {one.id: one.version for one in entries}
    return {hit.ref: (hit.keyword, hit.cosine) for hit in found.hits if versions.get(hit.ref) == hit.version}


def _top(ranked: Sequence[Scored], rows: dict[str, Entry], wanted: Ranking) -> list[Result]:
    reserved = [one.id for one in rows.values() if _is_anti_pattern(one)] if wanted.keep_anti_pattern else []
    best = ranking.top(ranked, wanted.limit, reserved)
    return [Result(rows[scored.id], scored) for scored in best]


def _is_anti_pattern(one: Entry) -> bool:
    return one.category is not None and one.category.split("/")[0] == ANTI_PATTERNS


async def _by_rows(
    resources: Resources, scope: Scope, query: str, criteria: Criteria, wanted: Ranking
) -> Results:
    """Search without the index: the same words, weighed among the rows that hold any of them."""
    async with resources.postgres.tenant(scope.tenant) as connection:
        entries = await _holding(connection, scope, query, criteria)
    scores = lexical.score(query, [document.keywords(one) for one in entries])
    candidates = [document.candidate(one, score, None) for one, score in zip(entries, scores, strict=True)]
    ranked = _rank(query, candidates, wanted)
    rows = {one.id: one for one in entries}
    degraded = ["index"] if resources.embedder is None else ["index", "dense"]
    return Results(_top(ranked, rows, wanted), ["postgres"], degraded)


async def _holding(connection: AsyncConnection, scope: Scope, query: str, criteria: Criteria) -> list[Entry]:
    terms = query_words(query)
    if not terms:
        return []
    holds, rank = rowwords.holding_any(entry.c.words, terms)
    statement = (
        select(entry)
        .where(*criteria.for_rows(scope), holds)
        .order_by(rank.desc(), entry.c.last_seen_at.desc())
        .limit(_FALLBACK_ROWS)
    )
    return await store.select_entries(connection, statement)


async def newest(
    resources: Resources,
    scope: Scope,
    criteria: Criteria,
    limit: int,
    after: tuple[datetime, str] | None = None,
) -> list[Entry]:
    """Return entries without a query, the last seen first."""
    statement = select(entry).where(*criteria.for_rows(scope))
    if after is not None:
        statement = statement.where(store.cursor_after(*after))
    ordered = statement.order_by(entry.c.last_seen_at.desc(), entry.c.id).limit(limit)
    async with resources.postgres.tenant(scope.tenant) as connection:
        return await store.select_entries(connection, ordered)
