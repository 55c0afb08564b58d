"""Search observations across sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement

from shared.conversation.observations import index_document, queries
from shared.conversation.observations.observation import Observation, ObservationKind
from shared.conversation.observations.table import observation as observation_table
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.platform.resources import Resources
from shared.search.index import filters
from shared.search.index.client import IndexHits, IndexQuery
from shared.search.index.fallback import RowHits, RowSource
from shared.search.index.filters import Condition, field_equals
from shared.search.index.hits import Hit
from shared.search.index.widening import search_until_enough
from shared.search.ranking.candidate import ScoredCandidate
from shared.search.ranking.rank import Ranking
from shared.search.search_results import SearchResults

ScoredObservation = tuple[Observation, float | None, float | None]
"""An observation with its keyword score and its cosine."""


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


async def search(
    resources: Resources, scope: Scope, query: str, criteria: ObservationFilters, limit: int
) -> SearchResults[tuple[Observation, ScoredCandidate]]:
    """Return the observations that match a query, best first.

    Without the index, the search terms in Postgres are used. Raises errors.Unavailable if Postgres is
    unavailable.
    """

    async def read_rows(terms: Sequence[str], max_rows: int) -> list[Observation]:
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            return await queries.list_matching(tx, terms, max_rows, *criteria.to_sql(scope))

    async def read_hits(found: IndexHits) -> tuple[list[ScoredObservation], int]:
        current = await _read_hits(resources, scope, criteria, found.hits)
        return current, len(current)

    index_query = IndexQuery(scope.tenant, RecordKind.OBSERVATION, query, criteria.to_qdrant(scope))
    source = RowSource("postgres", read_rows, index_document.keyword_text)
    found, observations = await search_until_enough(
        resources.search_index, index_query, source, read_hits, limit
    )
    if isinstance(found, RowHits):
        observations = [(row, score, None) for row, score in found.rows]
    results = _rank(query, observations or [])[:limit]
    return SearchResults(results, found.stages, found.degraded)


async def _read_hits(
    resources: Resources, scope: Scope, criteria: ObservationFilters, hits: Sequence[Hit]
) -> list[ScoredObservation]:
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        record_ids = [hit.record_id for hit in hits]
        observations = await queries.list_by_ids(tx, record_ids, *criteria.to_sql(scope))
    by_id = {observation.id: observation for observation in observations}
    return [(by_id[hit.record_id], hit.keyword, hit.cosine) for hit in hits if hit.record_id in by_id]


def _rank(query: str, observations: Sequence[ScoredObservation]) -> list[tuple[Observation, ScoredCandidate]]:
    by_id = {observation.id: observation for observation, _, _ in observations}
    candidates = [index_document.candidate(*scored) for scored in observations]
    ranker = Ranking(query, now=datetime.now(UTC))
    ranker.add(candidates)
    ranked = ranker.latest_first(ranker.best())
    return [(by_id[scored.id], scored) for scored in ranked]
