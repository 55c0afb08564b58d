"""Search the documents of a tenant, on an explicit request only: no context recalls them.

First the best CANDIDATES chunks by keywords and meaning, then a re-ranker chooses among them. Passages of the
business context come before all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.memory.documents import chunk_queries, index_document, rerank
from shared.memory.documents.agent_md import search_agent_md
from shared.memory.documents.diversity import ScoredText
from shared.memory.documents.document import DocumentChunk
from shared.memory.documents.passage import Passage
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources
from shared.search.index.client import IndexHits, IndexQuery
from shared.search.index.fallback import RowHits, RowSource
from shared.search.index.hits import Hit
from shared.search.index.widening import search_until_enough
from shared.search.ranking.rank import rank
from shared.search.search_results import SearchResults

CANDIDATES = 100
"""Chunks among which the re-ranker chooses."""
_FIRST_SCORE = 1.0
"""The score of a passage of the business context, or that of the best chunk if it is higher."""
ScoredChunk = tuple[DocumentChunk, float | None, float | None]
"""A chunk with its keyword score and its cosine."""


async def search(resources: Resources, caller: Caller, query: str, limit: int) -> SearchResults[Passage]:
    """Return at most `limit` passages that match a query, best first.

    Without the index, the search terms in Postgres are used. Raises errors.Unavailable if Postgres is
    unavailable.
    """
    rights.require_area(caller, Area.TENANT, Action.READ)
    first = (await search_agent_md(resources, caller.tenant, query))[:limit]
    found = await _find_chunks(resources, caller.tenant, query)
    chunks = {chunk.id: chunk for chunk, _, _ in found.chunks}
    chosen = await rerank.rerank(
        resources.cross_encoder, query, _rank(query, found.chunks), limit - len(first)
    )
    passages = [_passage(chunks[text.id], text.score) for text in chosen.texts]
    highest = max([_FIRST_SCORE, *(passage.score for passage in passages)])
    results = [*(replace(passage, score=highest) for passage in first), *passages]
    return SearchResults(results, [*found.stages, *chosen.stages], [*found.degraded, *chosen.degraded])


@dataclass(frozen=True, slots=True)
class _Found:
    chunks: list[ScoredChunk]
    stages: list[str]
    degraded: list[str]


async def _find_chunks(resources: Resources, tenant: str, query: str) -> _Found:
    async def read_rows(terms: Sequence[str], max_rows: int) -> list[DocumentChunk]:
        async with resources.postgres.for_tenant(tenant) as tx:
            return await chunk_queries.list_matching(tx, terms, max_rows)

    async def read_hits(found: IndexHits) -> tuple[list[ScoredChunk], int]:
        current = await _read_hits(resources, tenant, found.hits)
        return current, len(current)

    version = index_document.VERSION
    index_query = IndexQuery(tenant, RecordKind.DOCUMENT_CHUNK, query, (), version=version)
    source = RowSource("postgres", read_rows, index_document.keyword_text)
    found, chunks = await search_until_enough(
        resources.search_index, index_query, source, read_hits, CANDIDATES
    )
    if isinstance(found, RowHits):
        chunks = [(row, score, None) for row, score in found.rows]
    return _Found(chunks or [], found.stages, found.degraded)


async def _read_hits(resources: Resources, tenant: str, hits: Sequence[Hit]) -> list[ScoredChunk]:
    async with resources.postgres.for_tenant(tenant) as tx:
        chunks = await chunk_queries.list_searchable(tx, [hit.record_id for hit in hits])
    by_id = {chunk.id: chunk for chunk in chunks}
    return [(by_id[hit.record_id], hit.keyword, hit.cosine) for hit in hits if hit.record_id in by_id]


def _rank(query: str, chunks: Sequence[ScoredChunk]) -> list[ScoredText]:
    """Return the candidates of the re-ranker, best first."""
    candidates = [index_document.candidate(*scored) for scored in chunks]
    text_by_id = {candidate.id: candidate.said for candidate in candidates}
    ranked = rank(query, candidates, now=datetime.now(UTC))
    return [ScoredText(scored.id, text_by_id[scored.id], scored.score) for scored in ranked[:CANDIDATES]]


def _passage(chunk: DocumentChunk, score: float) -> Passage:
    place = (chunk.page, chunk.line_from, chunk.line_to)
    return Passage(chunk.content, score, chunk.title, chunk.document_id, *place)
