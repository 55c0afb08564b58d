"""Choose those of many working-memory entries that fit a text, by keywords and without reading values."""

from collections.abc import Sequence

from shared.foundation.stages import RecordKind
from shared.memory.working import index_document, keys
from shared.memory.working.search import WorkingFilters
from shared.memory.working.working_entry import WorkingEntryInfo
from shared.platform.resources import Resources
from shared.search.index.client import IndexHits, IndexQuery
from shared.search.index.fallback import RowHits, RowSource
from shared.search.index.widening import search_until_enough
from shared.search.text import indexed_text

_ScoredInfo = tuple[WorkingEntryInfo, float]


async def best_matches(
    resources: Resources, tenant: str, text: str, infos: Sequence[WorkingEntryInfo], prefix: str, limit: int
) -> list[WorkingEntryInfo]:
    """Return up to `limit` of these entries under a prefix that share words with a text, best first.

    The outline of a large value stands for the whole value. While the index is unavailable, keys,
    categories and tags are compared alone.
    """
    by_id = {index_document.record_id_of(keys.parse_view(info.key).base): info for info in infos}

    async def read_hits(found: IndexHits) -> tuple[list[_ScoredInfo], int]:
        matching = [
            (by_id[hit.record_id], hit.keyword or 0.0) for hit in found.hits if hit.record_id in by_id
        ]
        return matching, len(matching)

    async def read_infos(_terms: Sequence[str], _max_rows: int) -> Sequence[WorkingEntryInfo]:
        return infos

    conditions = WorkingFilters(prefix).to_qdrant()
    query = IndexQuery(tenant, RecordKind.WORKING, text, conditions, keywords_only=True)
    source = RowSource("working", read_infos, _info_text)
    found, scored = await search_until_enough(resources.search_index, query, source, read_hits, limit)
    if isinstance(found, RowHits):
        scored = found.rows
    best_first = sorted(scored or [], key=lambda pair: -pair[1])
    return [info for info, score in best_first[:limit] if score > 0]


def _info_text(info: WorkingEntryInfo) -> str:
    return indexed_text.keyword_text(
        info.key.replace("/", " ").replace("_", " ").replace("-", " "), category=info.category, tags=info.tags
    )
