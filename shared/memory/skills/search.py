"""Search the skills that a scope goes by: hybrid search over names, summaries and descriptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.memory.skills import hit_queries, index_document, queries
from shared.memory.skills.skill import CatalogueEntry, SearchableSkill, Skill
from shared.platform.resources import Resources
from shared.search.index import filters
from shared.search.index.client import IndexHits, IndexQuery
from shared.search.index.fallback import RowHits, RowSource
from shared.search.index.widening import search_until_enough
from shared.search.ranking.rank import rank
from shared.search.search_results import SearchResults

_HITS_PER_RESULT = 5
"""Hits of a channel per skill that is returned; each turn of an agent with skills ranks them all."""
_Scored = tuple[SearchableSkill, float | None, float | None]
"""A skill with its keyword score and its cosine."""


@dataclass(frozen=True, slots=True)
class SkillHit:
    """A skill that a search found, and its score."""

    skill: Skill
    score: float


async def search(
    resources: Resources,
    scope: Scope,
    query: str,
    limit: int,
    *,
    among: Sequence[CatalogueEntry] | None = None,
) -> SearchResults[SkillHit]:
    """Return the skills in force in a scope that match a query, best first.

    `among` are those skills, if the caller has just read them. Without the index, the search terms in
    Postgres are used. Raises errors.Unavailable if Postgres is unavailable.
    """

    async def read_rows(terms: Sequence[str], max_rows: int) -> list[SearchableSkill]:
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            rows = await queries.list_matching(tx, scope, terms, max_rows)
        return [skill.searchable for skill in rows]

    async def read_hits(found: IndexHits) -> tuple[list[_Scored], int]:
        entries = among or await _read_hits(resources, scope, found)
        by_version = {(entry.id, entry.version): entry.searchable for entry in entries}
        hits = [(by_version.get((hit.record_id, hit.version)), hit) for hit in found.hits]
        scored = [(skill, hit.keyword, hit.cosine) for skill, hit in hits if skill is not None]
        return scored, len(scored)

    conditions = filters.scope_conditions(scope)
    index_query = IndexQuery(
        scope.tenant, RecordKind.SKILL, query, conditions, max_hits=_HITS_PER_RESULT * limit
    )
    source = RowSource("postgres", read_rows, index_document.keyword_text)
    found, scored = await search_until_enough(resources.search_index, index_query, source, read_hits, limit)
    if isinstance(found, RowHits):
        scored = [(skill, score, None) for skill, score in found.rows]
    candidates = [index_document.candidate(*item) for item in scored or []]
    ranked = rank(query, candidates, now=datetime.now(UTC))[:limit]
    by_id = await _read(resources, scope, [item.id for item in ranked])
    hits = [SkillHit(by_id[item.id], item.score) for item in ranked if item.id in by_id]
    return SearchResults(hits, found.stages, found.degraded)


async def _read_hits(resources: Resources, scope: Scope, found: IndexHits) -> list[CatalogueEntry]:
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await hit_queries.list_hits(tx, scope, [hit.record_id for hit in found.hits])


async def _read(resources: Resources, scope: Scope, ids: Sequence[str]) -> dict[str, Skill]:
    """Return the skills among `ids` that still exist, whole and by id."""
    if not ids:
        return {}
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        rows = await queries.list_by_ids(tx, ids)
    return {skill.id: skill for skill in rows}
