"""Search working memory: the index finds hits, Redis has the current entries, pure functions rank them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.foundation import validation
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.memory.working import access, index_document, keys, queries
from shared.memory.working.working_entry import WorkingEntry
from shared.memory.working.working_memory import WorkingMemory
from shared.platform.resources import Resources
from shared.search.index import filters as index_filters
from shared.search.index.client import IndexHits, IndexQuery
from shared.search.index.fallback import RowHits, RowSource
from shared.search.index.filters import Condition, field_equals
from shared.search.index.hits import Hit
from shared.search.index.widening import search_until_enough
from shared.search.ranking import rank as ranking
from shared.search.ranking.candidate import Candidate
from shared.search.search_results import SearchResults

WorkingResult = tuple[WorkingEntry, float]
"""An entry with its score."""


@dataclass(frozen=True, slots=True)
class WorkingFilters:
    """Filters that must all hold. `prefix` is compared by segments; empty means every namespace."""

    prefix: str = ""
    category: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.category is not None:
            validation.check_category(self.category)

    def to_qdrant(self) -> list[Condition]:
        """Return the conditions on points."""
        conditions = [
            index_filters.is_later_than("expires_at", datetime.now(UTC)),
            *index_filters.contains_all("tags", self.tags),
        ]
        if self.prefix:
            conditions.append(field_equals("namespace_prefixes", keys.normalize_key(self.prefix)))
        if self.category:
            conditions.append(field_equals("category_prefixes", self.category))
        return conditions

    def match(self, entry: WorkingEntry) -> bool:
        """Return whether an entry meets all filters."""
        is_in_category = self.category is None or f"{entry.category or ''}/".startswith(f"{self.category}/")
        return is_in_category and set(self.tags) <= set(entry.tags) and keys.is_within(entry.key, self.prefix)


async def search(
    resources: Resources, caller: Caller, query: str | None, filters: WorkingFilters, limit: int
) -> SearchResults[WorkingResult]:
    """Return the entries that match and that the key may see, best first; without a query the newest.

    While the index is unavailable, all entries are scored in process, and `degraded` says so.
    Raises errors.Unavailable while Redis or Postgres is.
    """
    working_memory = WorkingMemory.from_resources(resources, caller.tenant)
    if query is None or validation.is_blank(query):
        return await _list_newest(resources, caller, working_memory, filters, limit)

    async def read_entries(_terms: Sequence[str], _max_rows: int) -> list[WorkingEntry]:
        # Redis cannot match terms, and namespaces are small.
        return await _list_visible(resources, caller, working_memory, filters)

    async def read_hits(found: IndexHits) -> tuple[dict[str, tuple[WorkingEntry, Candidate]], int]:
        current = await _read_hits(resources, caller, working_memory, filters, found.hits)
        return current, len(current)

    index_query = IndexQuery(caller.tenant, RecordKind.WORKING, query, filters.to_qdrant())
    source = RowSource("working", read_entries, index_document.keywords)
    found, entries = await search_until_enough(resources.search_index, index_query, source, read_hits, limit)
    if isinstance(found, RowHits):
        entries = {
            entry.key: (entry, index_document.candidate(entry, score, None)) for entry, score in found.rows
        }
    entries = entries or {}
    candidates = [candidate for _, candidate in entries.values()]
    ranked = ranking.rank(query, candidates, now=datetime.now(UTC))
    results = [(entries[scored.id][0], scored.score) for scored in ranked[:limit]]
    return SearchResults(results, found.stages, found.degraded)


async def _read_hits(
    resources: Resources,
    caller: Caller,
    working_memory: WorkingMemory,
    filters: WorkingFilters,
    hits: Sequence[Hit],
) -> dict[str, tuple[WorkingEntry, Candidate]]:
    """Read the entries of the hits that are still current and that the key may see, by key.

    Whose they are is asked first: this comes before the limit is applied, or entries of others would use it
    up. One that then still has the version of its hit was there all the while, and so is its owner's.
    """
    visible = await access.visible_namespaces(resources.postgres, caller, [hit.record_id for hit in hits])
    hits_by_id = {hit.record_id: hit for hit in hits if keys.namespace_of(hit.record_id) in visible}
    with redis_client.failures_as_unavailable():
        entries = await queries.read_many(working_memory, hits_by_id)
    current_hits = [
        (entry, hits_by_id[record_id])
        for record_id, entry in entries.items()
        if entry.version == hits_by_id[record_id].version and filters.match(entry)
    ]
    return {
        entry.key: (entry, index_document.candidate(entry, hit.keyword, hit.cosine))
        for entry, hit in current_hits
    }


async def _list_newest(
    resources: Resources, caller: Caller, working_memory: WorkingMemory, filters: WorkingFilters, limit: int
) -> SearchResults[WorkingResult]:
    entries = await _list_visible(resources, caller, working_memory, filters)
    newest = sorted(entries, key=lambda entry: entry.stored_at, reverse=True)[:limit]
    return SearchResults([(entry, 0.0) for entry in newest], ["newest"])


async def _list_visible(
    resources: Resources, caller: Caller, working_memory: WorkingMemory, filters: WorkingFilters
) -> list[WorkingEntry]:
    async def read_matching() -> list[WorkingEntry]:
        entries = queries.iterate_entries(working_memory, filters.prefix)
        return [entry async for entry in entries if filters.match(entry)]

    return await access.read_visible(resources, caller, filters.prefix, read_matching)
