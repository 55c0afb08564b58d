"""Find observations across sessions (SE10)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import ColumnElement

from shared.conversation.observations import index_document, queries
from shared.conversation.observations.observation import Observation, ObservationKind
from shared.conversation.observations.table import observation
from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.platform.resources import Resources
from shared.search.index import filters
from shared.search.index.client import IndexHits
from shared.search.index.filters import Condition, field_equals
from shared.search.ranking import rank as ranking
from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.text import bm25
from shared.search.text.tokenizer import tokenize_query

_FALLBACK_ROWS = 500


@dataclass(frozen=True, slots=True)
class ObservationFilters:
    """Filters, all of which must hold."""

    kind: ObservationKind | None = None
    session_id: str | None = None

    def to_qdrant(self, scope: Scope) -> list[Condition]:
        """Return the conditions in the index's words."""
        wanted = filters.scope_conditions(scope)
        if self.kind is not None:
            wanted.append(field_equals("category_prefixes", self.kind))
        if self.session_id is not None:
            wanted.append(field_equals("session_id", self.session_id))
        return wanted

    def to_sql(self, scope: Scope) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of `observation`."""
        wanted = [queries.visible(scope)]
        if self.kind is not None:
            wanted.append(observation.c.kind == self.kind)
        if self.session_id is not None:
            wanted.append(observation.c.session_id == self.session_id)
        return wanted


@dataclass(frozen=True, slots=True)
class ObservationResults:
    """Observations, best first, with what ran and what was missing."""

    results: list[tuple[Observation, ScoredCandidate]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


async def search(
    resources: Resources, scope: Scope, query: str, criteria: ObservationFilters, limit: int
) -> ObservationResults:
    """Return the observations that match, best first; from the rows' own words when the index is away."""
    try:
        found = await resources.search_index.search(
            scope.tenant, RecordKind.OBSERVATION, query, criteria.to_qdrant(scope)
        )
    except errors.Unavailable as away:
        if away.dependency == "postgres":
            raise
        return await _by_rows(resources, scope, query, criteria, limit)
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        hits = [hit.record_id for hit in found.hits]
        rows = await queries.read(connection, scope.tenant, hits, *criteria.to_sql(scope))
    known = {one.id: one for one in rows}
    offered = [
        index_document.candidate(known[hit.record_id], hit.keyword, hit.cosine)
        for hit in found.hits
        if hit.record_id in known
    ]
    return _results(_ranked(query, offered, limit), known, found)


async def _by_rows(
    resources: Resources, scope: Scope, query: str, criteria: ObservationFilters, limit: int
) -> ObservationResults:
    degraded = ["index"] if resources.embedder is None else ["index", "dense"]
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        rows = await queries.list_matching(
            connection, tokenize_query(query), _FALLBACK_ROWS, *criteria.to_sql(scope)
        )
    scores = bm25.score_texts(query, [index_document.keywords(one) for one in rows])
    offered = [index_document.candidate(one, score) for one, score in zip(rows, scores, strict=True)]
    ranked = _ranked(query, offered, limit)
    return _results(ranked, {one.id: one for one in rows}, IndexHits([], ["postgres"], degraded))


def _ranked(query: str, offered: Sequence[Candidate], limit: int) -> list[ScoredCandidate]:
    return ranking.rank(query, offered, now=datetime.now(UTC))[:limit]


def _results(
    ranked: Sequence[ScoredCandidate], known: dict[str, Observation], found: IndexHits
) -> ObservationResults:
    return ObservationResults([(known[one.id], one) for one in ranked], found.stages, found.degraded)
