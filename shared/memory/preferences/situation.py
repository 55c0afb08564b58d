"""Find the preferences whose described situation is like a given one: hybrid search, then yes or no."""

from collections.abc import Sequence
from datetime import UTC, datetime

from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.memory.preferences import index_document, queries
from shared.memory.preferences.likeness import is_alike
from shared.memory.preferences.preference import Preference
from shared.platform.resources import Resources
from shared.search.floor import Floor
from shared.search.index import filters
from shared.search.index.client import IndexHits, IndexQuery
from shared.search.index.fallback import RowHits, RowSource
from shared.search.index.filters import Condition
from shared.search.index.widening import search_until_enough
from shared.search.ranking.candidate import Candidate
from shared.search.ranking.rank import rank
from shared.search.search_results import SearchResults

MAX_ALIKE = 50
"""Preferences that are taken for their situation at most: the most similar ones."""
_Scored = tuple[Preference, float | None, float | None]
"""A preference with its keyword score and its cosine."""


async def find_alike(
    resources: Resources, scope: Scope, situation: str, flow: str | None
) -> SearchResults[Preference]:
    """Return the preferences in force that describe a situation like this, most similar first.

    With a flow, those that name another flow are left out. Without the index, the search terms in Postgres
    are used. Raises errors.Unavailable if Postgres is unavailable.
    """
    conditions = (queries.in_force(scope), queries.of_flow(flow))

    async def read_rows(terms: Sequence[str], max_rows: int) -> list[Preference]:
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            return await queries.list_matching(tx, terms, max_rows, *conditions)

    async def read_hits(found: IndexHits) -> tuple[list[_Scored], int]:
        ids = [hit.record_id for hit in found.hits]
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            rows = await queries.list_by_ids(tx, ids, *conditions)
        by_id = {preference.id: preference for preference in rows}
        scored = [
            (by_id[hit.record_id], hit.keyword, hit.cosine) for hit in found.hits if hit.record_id in by_id
        ]
        return scored, len(scored)

    query = IndexQuery(
        scope.tenant, RecordKind.PREFERENCE, situation, _conditions(scope, flow), embed_as_is=True
    )
    source = RowSource("postgres", read_rows, _description)
    found, scored = await search_until_enough(resources.search_index, query, source, read_hits, MAX_ALIKE)
    if isinstance(found, RowHits):
        scored = [(preference, score, None) for preference, score in found.rows]
    alike = _alike(situation, scored or [], found.floor)[:MAX_ALIKE]
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


def _alike(situation: str, scored: Sequence[_Scored], floor: Floor | None) -> list[Preference]:
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
