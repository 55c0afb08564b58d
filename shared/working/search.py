"""Find what lies on the desks: the same ranking as everywhere, read again from Redis."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from qdrant_client import models

from shared import errors, naming
from shared.clients import redis
from shared.index import conditions, lexical, ranking
from shared.index.candidate import Candidate
from shared.index.points import matches
from shared.index.search import Found
from shared.resources import Resources
from shared.stages import Kind
from shared.working import document, keys, store
from shared.working.record import DeskEntry
from shared.working.store import Desk


@dataclass(frozen=True, slots=True)
class DeskCriteria:
    """Filters, all of which must hold. `prefix` is segment-aware; empty means every namespace."""

    prefix: str = ""
    category: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.category is not None:
            naming.check_category(self.category)

    def for_index(self) -> list[models.Condition]:
        """Return the conditions in the index's words."""
        alive = models.DatetimeRange(gt=datetime.now(UTC))
        wanted = [
            models.FieldCondition(key="expires_at", range=alive),
            *conditions.all_of("tags", self.tags),
        ]
        if self.prefix:
            wanted.append(matches("namespaces", keys.fold(self.prefix)))
        return [*wanted, matches("categories", self.category)] if self.category else wanted

    def hold(self, entry: DeskEntry) -> bool:
        """Tell whether an entry meets them."""
        within = self.category is None or f"{entry.category or ''}/".startswith(f"{self.category}/")
        return within and set(self.tags) <= set(entry.tags) and keys.is_within(entry.key, self.prefix)


@dataclass(frozen=True, slots=True)
class DeskResults:
    """Entries with their scores, best first, with what ran and what was missing."""

    results: list[tuple[DeskEntry, float]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


async def search(
    resources: Resources, tenant: str, query: str | None, criteria: DeskCriteria, limit: int
) -> DeskResults:
    """Return the entries that match, best first; without a query the newest first."""
    desk = Desk(resources.redis, resources.settings, tenant)
    if not query:
        return await _newest(desk, criteria, limit)
    try:
        found = await resources.index.find(tenant, Kind.DESK, query, criteria.for_index())
    except errors.Unavailable as away:
        if away.dependency == "postgres":
            raise
        return await _in_process(resources, desk, query, criteria, limit)
    hits = {hit.ref: hit for hit in found.hits}
    with redis.translated():
        entries = await store.read_many(desk, hits)
    current = {ref: one for ref, one in entries.items() if document.version(one) == hits[ref].version}
    held = [(ref, one) for ref, one in current.items() if criteria.hold(one)]
    candidates = [document.candidate(one, hits[ref].keyword, hits[ref].cosine) for ref, one in held]
    return _results(query, candidates, [one for _, one in held], limit, found)


async def _newest(desk: Desk, criteria: DeskCriteria, limit: int) -> DeskResults:
    entries = await _held(desk, criteria)
    newest = sorted(entries, key=lambda one: one.stored_at, reverse=True)[:limit]
    return DeskResults([(one, 0.0) for one in newest], ["newest"])


async def _held(desk: Desk, criteria: DeskCriteria) -> list[DeskEntry]:
    with redis.translated():
        return [one async for one in store.entries(desk, criteria.prefix) if criteria.hold(one)]


async def _in_process(
    resources: Resources, desk: Desk, query: str, criteria: DeskCriteria, limit: int
) -> DeskResults:
    entries = await _held(desk, criteria)
    scores = lexical.score(query, [document.words(one) for one in entries])
    candidates = [document.candidate(one, score, None) for one, score in zip(entries, scores, strict=True)]
    degraded = ["index"] if resources.embedder is None else ["index", "dense"]
    return _results(query, candidates, entries, limit, Found([], ["desk"], degraded))


def _results(
    query: str, candidates: Sequence[Candidate], entries: Sequence[DeskEntry], limit: int, found: Found
) -> DeskResults:
    by_key = {one.key: one for one in entries}
    ranked = ranking.rank(query, candidates, now=datetime.now(UTC))[:limit]
    results = [(by_key[scored.id], scored.score) for scored in ranked]
    return DeskResults(results, found.stages, found.degraded)
