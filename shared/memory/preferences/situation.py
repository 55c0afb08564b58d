"""Find the preferences whose described situation is like a given one: hybrid search, then yes or no."""

from collections.abc import Sequence
from datetime import UTC, datetime

from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.memory.preferences import index_document, queries
from shared.memory.preferences.likeness import is_alike
from shared.memory.preferences.preference import Preference
from shared.memory.preferences.record_type import PREFERENCE
from shared.memory.preferences.table import preference as preference_table
from shared.platform.resources import Resources
from shared.records import search as record_search
from shared.records.search import Scored
from shared.search.floor import Floor
from shared.search.index import filters
from shared.search.index.client import IndexQuery
from shared.search.index.filters import Condition
from shared.search.ranking.candidate import Candidate
from shared.search.ranking.rank import rank
from shared.search.search_results import SearchResults

MAX_ALIKE = 50
"""Preferences that are taken for their situation at most: the most similar ones."""


async def find_alike(
    resources: Resources, scope: Scope, situation: str, flow: str | None
) -> SearchResults[Preference]:
    """Return the preferences in force that describe a situation like this, most similar first.

    With a flow, those that name another flow are left out. Without the index, the search terms in Postgres
    are used. Raises errors.Unavailable if Postgres is unavailable.
    """
    query = IndexQuery(
        scope.tenant, RecordKind.PREFERENCE, situation, _conditions(scope, flow), embed_as_is=True
    )
    latest_first = (preference_table.c.updated_at.desc(),)
    where = (queries.in_force(scope), queries.of_flow(flow))
    read = record_search.reader(resources.postgres, scope.tenant, PREFERENCE, *where, order=latest_first)
    found = await record_search.search(resources.search_index, query, read, MAX_ALIKE)
    alike = _alike(situation, found.scored, found.floor)[:MAX_ALIKE]
    return SearchResults(alike, found.stages, found.degraded)


def _conditions(scope: Scope, flow: str | None) -> list[Condition]:
    in_scope = filters.scope_conditions(scope)
    return (
        in_scope
        if flow is None
        else [*in_scope, filters.field_is_any("flow", [index_document.ANY_FLOW, flow])]
    )


def _description(preference: Preference) -> str:
    return preference.condition.description or ""


def _alike(situation: str, scored: Sequence[Scored[Preference]], floor: Floor | None) -> list[Preference]:
    by_id = {
        preference.id: preference
        for preference, _, cosine in scored
        if is_alike(situation, _description(preference), cosine, floor)
    }
    candidates = [
        Candidate(preference.id, _description(preference), keyword, cosine, said=_description(preference))
        for preference, keyword, cosine in scored
        if preference.id in by_id
    ]
    ranked = rank(situation, candidates, now=datetime.now(UTC))
    return [by_id[candidate.id] for candidate in ranked]
