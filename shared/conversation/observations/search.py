"""Search observations across sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement

from shared.conversation.observations import index_document, queries
from shared.conversation.observations.observation import Observation, ObservationKind
from shared.conversation.observations.record_type import OBSERVATION
from shared.conversation.observations.table import observation as observation_table
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.platform.resources import Resources
from shared.records import search as record_search
from shared.records.search import Scored
from shared.search.index import filters
from shared.search.index.client import IndexQuery
from shared.search.index.filters import Condition, field_equals
from shared.search.ranking.candidate import ScoredCandidate
from shared.search.ranking.rank import Ranking
from shared.search.search_results import SearchResults


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
    index_query = IndexQuery(scope.tenant, RecordKind.OBSERVATION, query, criteria.to_qdrant(scope))
    newest_first = (observation_table.c.created_at.desc(),)
    read = record_search.reader(
        resources.postgres, scope.tenant, OBSERVATION, *criteria.to_sql(scope), order=newest_first
    )
    found = await record_search.search(resources.search_index, index_query, read, limit)
    return SearchResults(_rank(query, found.scored)[:limit], found.stages, found.degraded)


def _rank(query: str, found: Sequence[Scored[Observation]]) -> list[tuple[Observation, ScoredCandidate]]:
    by_id = {scored.record.id: scored.record for scored in found}
    candidates = [index_document.candidate(*scored) for scored in found]
    ranker = Ranking(query, now=datetime.now(UTC))
    ranker.add(candidates)
    ranked = ranker.latest_first(ranker.best())
    return [(by_id[scored.id], scored) for scored in ranked]
