"""Search observations across sessions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import ColumnElement

from shared.conversation.observations import index_document, queries
from shared.conversation.observations.observation import Observation, ObservationKind
from shared.conversation.observations.table import observation as observation_table
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
    """Filters, all of which an observation must meet."""

    kind: ObservationKind | None = None
    session_id: str | None = None

    def to_qdrant(self, scope: Scope) -> list[Condition]:
        """Return the filters as Qdrant conditions."""
        conditions = filters.scope_conditions(scope)
        if self.kind is not None:
            conditions.append(field_equals("category_prefixes", self.kind))
        if self.session_id is not None:
            conditions.append(field_equals("session_id", self.session_id))
        return conditions

    def to_sql(self, scope: Scope) -> list[ColumnElement[bool]]:
        """Return the filters as conditions on rows of `observation`."""
        conditions = [queries.visible(scope)]
        if self.kind is not None:
            conditions.append(observation_table.c.kind == self.kind)
        if self.session_id is not None:
            conditions.append(observation_table.c.session_id == self.session_id)
        return conditions


@dataclass(frozen=True, slots=True)
class ObservationResults:
    """Observations, best first, with the search stages that ran and the parts that were unavailable."""

    results: list[tuple[Observation, ScoredCandidate]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


async def search(
    resources: Resources, scope: Scope, query: str, criteria: ObservationFilters, limit: int
) -> ObservationResults:
    """Return the observations that match a query, best first.

    Without the index, the search terms in Postgres are used. Raises errors.Unavailable if Postgres is
    unavailable.
    """
    try:
        index_hits = await resources.search_index.search(
            scope.tenant, RecordKind.OBSERVATION, query, criteria.to_qdrant(scope)
        )
    except errors.Unavailable as error:
        if error.dependency == "postgres":
            raise
        return await _search_rows(resources, scope, query, criteria, limit)
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        record_ids = [hit.record_id for hit in index_hits.hits]
        observations = await queries.list_by_ids(
            connection, scope.tenant, record_ids, *criteria.to_sql(scope)
        )
    by_id = {observation.id: observation for observation in observations}
    candidates = [
        index_document.candidate(by_id[hit.record_id], hit.keyword, hit.cosine)
        for hit in index_hits.hits
        if hit.record_id in by_id
    ]
    return _results(_rank(query, candidates, limit), by_id, index_hits)


async def _search_rows(
    resources: Resources, scope: Scope, query: str, criteria: ObservationFilters, limit: int
) -> ObservationResults:
    degraded = ["index"] if resources.embedder is None else ["index", "dense"]
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        observations = await queries.list_matching(
            connection, tokenize_query(query), _FALLBACK_ROWS, *criteria.to_sql(scope)
        )
    texts = [index_document.keyword_text(observation) for observation in observations]
    scores = bm25.score_texts(query, texts)
    scored = zip(observations, scores, strict=True)
    candidates = [index_document.candidate(observation, score) for observation, score in scored]
    by_id = {observation.id: observation for observation in observations}
    return _results(_rank(query, candidates, limit), by_id, IndexHits([], ["postgres"], degraded))


def _rank(query: str, candidates: Sequence[Candidate], limit: int) -> list[ScoredCandidate]:
    return ranking.rank(query, candidates, now=datetime.now(UTC))[:limit]


def _results(
    ranked: Sequence[ScoredCandidate], by_id: dict[str, Observation], index_hits: IndexHits
) -> ObservationResults:
    results = [(by_id[scored.id], scored) for scored in ranked]
    return ObservationResults(results, index_hits.stages, index_hits.degraded)
