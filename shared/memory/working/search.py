"""Find what lies on the desks: the same ranking as everywhere, read again from Redis."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from shared.foundation import errors, validation
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.memory.working import access, index_document, keys, queries
from shared.memory.working.queries import WorkingMemory
from shared.memory.working.working_entry import WorkingEntry
from shared.platform.resources import Resources
from shared.search.index import filters
from shared.search.index.client import IndexHits
from shared.search.index.filters import Condition, field_equals
from shared.search.ranking import rank as ranking
from shared.search.ranking.candidate import Candidate
from shared.search.text import bm25


@dataclass(frozen=True, slots=True)
class WorkingFilters:
    """Filters, all of which must hold. `prefix` is segment-aware; empty means every namespace."""

    prefix: str = ""
    category: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.category is not None:
            validation.check_category(self.category)

    def to_qdrant(self) -> list[Condition]:
        """Return the conditions in the index's words."""
        wanted = [
            filters.is_later_than("expires_at", datetime.now(UTC)),
            *filters.contains_all("tags", self.tags),
        ]
        if self.prefix:
            wanted.append(field_equals("namespace_prefixes", keys.normalize_key(self.prefix)))
        return [*wanted, field_equals("category_prefixes", self.category)] if self.category else wanted

    def hold(self, entry: WorkingEntry) -> bool:
        """Tell whether an entry meets them."""
        within = self.category is None or f"{entry.category or ''}/".startswith(f"{self.category}/")
        return within and set(self.tags) <= set(entry.tags) and keys.is_within(entry.key, self.prefix)


@dataclass(frozen=True, slots=True)
class WorkingResults:
    """Entries with their scores, best first, with what ran and what was missing."""

    results: list[tuple[WorkingEntry, float]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


async def search(
    resources: Resources, caller: Caller, query: str | None, criteria: WorkingFilters, limit: int
) -> WorkingResults:
    """Return the entries that match and the key may see, best first; without a query the newest first."""
    desk = WorkingMemory(resources.redis, resources.settings, caller.tenant)
    if not query:
        return await _newest(resources, caller, desk, criteria, limit)
    try:
        found = await resources.search_index.search(
            caller.tenant, RecordKind.WORKING, query, criteria.to_qdrant()
        )
    except errors.Unavailable as away:
        if away.dependency == "postgres":
            raise
        return await _in_process(resources, caller, desk, query, criteria, limit)
    hits = {hit.record_id: hit for hit in found.hits}
    with redis_client.failures_as_unavailable():
        entries = await queries.read_many(desk, hits)
    current = {
        record_id: one
        for record_id, one in entries.items()
        if index_document.version(one) == hits[record_id].version
    }
    held = {one.key: hits[ref] for ref, one in current.items() if criteria.hold(one)}
    seen = await _visible(resources, caller, [one for one in current.values() if one.key in held])
    candidates = [index_document.candidate(one, held[one.key].keyword, held[one.key].cosine) for one in seen]
    return _results(query, candidates, seen, limit, found)


async def _visible(
    resources: Resources, caller: Caller, entries: Sequence[WorkingEntry]
) -> list[WorkingEntry]:
    """Leave out others' desks before the best are counted off: else they would take the places."""
    seen = await access.visible(resources.postgres, caller, [one.key for one in entries])
    return [one for one in entries if keys.namespace_of(one.key) in seen]


async def _newest(
    resources: Resources, caller: Caller, desk: WorkingMemory, criteria: WorkingFilters, limit: int
) -> WorkingResults:
    entries = await _visible(resources, caller, await _held(desk, criteria))
    newest = sorted(entries, key=lambda one: one.stored_at, reverse=True)[:limit]
    return WorkingResults([(one, 0.0) for one in newest], ["newest"])


async def _held(desk: WorkingMemory, criteria: WorkingFilters) -> list[WorkingEntry]:
    with redis_client.failures_as_unavailable():
        return [one async for one in queries.entries(desk, criteria.prefix) if criteria.hold(one)]


async def _in_process(
    resources: Resources,
    caller: Caller,
    desk: WorkingMemory,
    query: str,
    criteria: WorkingFilters,
    limit: int,
) -> WorkingResults:
    entries = await _visible(resources, caller, await _held(desk, criteria))
    scores = bm25.score_texts(query, [index_document.words(one) for one in entries])
    candidates = [
        index_document.candidate(one, score, None) for one, score in zip(entries, scores, strict=True)
    ]
    degraded = ["index"] if resources.embedder is None else ["index", "dense"]
    return _results(query, candidates, entries, limit, IndexHits([], ["working"], degraded))


def _results(
    query: str, candidates: Sequence[Candidate], entries: Sequence[WorkingEntry], limit: int, found: IndexHits
) -> WorkingResults:
    by_key = {one.key: one for one in entries}
    ranked = ranking.rank(query, candidates, now=datetime.now(UTC))[:limit]
    results = [(by_key[scored.id], scored.score) for scored in ranked]
    return WorkingResults(results, found.stages, found.degraded)
