"""Search the skills that a scope goes by: hybrid search over names, summaries and descriptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.memory.skills import hit_queries, index_document, queries
from shared.memory.skills.record_type import SKILL
from shared.memory.skills.skill import CatalogueEntry, SearchableSkill, Skill
from shared.memory.skills.table import skill as skill_table
from shared.platform.resources import Resources
from shared.records import search as record_search
from shared.records.search import Reader
from shared.search.index import filters
from shared.search.index.client import IndexQuery
from shared.search.index.hits import Hit
from shared.search.ranking.rank import rank
from shared.search.search_results import SearchResults

_HITS_PER_RESULT = 5
"""Hits of a channel per skill that is returned; each turn of an agent with skills ranks them all."""


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

    async def of_hits(hits: Sequence[Hit]) -> list[SearchableSkill | None]:
        entries = among or await _read_hits(resources, scope, hits)
        by_version = {(entry.id, entry.version): entry.searchable for entry in entries}
        return [by_version.get((hit.record_id, hit.version)) for hit in hits]

    async def of_terms(terms: Sequence[str], max_rows: int) -> list[SearchableSkill]:
        by_name = (skill_table.c.name,)
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            rows = await SKILL.read_matching(tx, terms, max_rows, queries.in_force(scope), order=by_name)
        return [skill.searchable for skill in rows]

    max_hits = _HITS_PER_RESULT * limit
    index_query = IndexQuery(
        scope.tenant, RecordKind.SKILL, query, filters.scope_conditions(scope), max_hits=max_hits
    )
    read = Reader(of_hits, of_terms, index_document.keyword_text)
    found = await record_search.search(resources.search_index, index_query, read, limit)
    candidates = [index_document.candidate(*scored) for scored in found.scored]
    ranked = rank(query, candidates, now=datetime.now(UTC))[:limit]
    by_id = await _read(resources, scope, [item.id for item in ranked])
    hits = [SkillHit(by_id[item.id], item.score) for item in ranked if item.id in by_id]
    return SearchResults(hits, found.stages, found.degraded)


async def _read_hits(resources: Resources, scope: Scope, hits: Sequence[Hit]) -> list[CatalogueEntry]:
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await hit_queries.list_hits(tx, scope, [hit.record_id for hit in hits])


async def _read(resources: Resources, scope: Scope, ids: Sequence[str]) -> dict[str, Skill]:
    """Return the skills among `ids` that still exist, whole and by id."""
    if not ids:
        return {}
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await SKILL.read_by_ids(tx, ids)
