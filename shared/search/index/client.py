"""Search the index: one batch request with both channels, always filtered by tenant.

The hits are only candidates. Callers read each of them again from its own database, so an outdated,
deleted or foreign point is never returned. Qdrant computes the IDF over the records of the tenant (since
1.19), so that the words of one tenant do not change the ranking of another. Older servers use all records.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.foundation import errors
from shared.foundation.stages import EMBED, RecordKind
from shared.infra.embedder import Embedder, Vector
from shared.infra.postgres import Postgres
from shared.infra.qdrant import CollectionNotFound, Json, Qdrant
from shared.jobs import model_guard, status
from shared.search.floor import Floor, floor_of
from shared.search.index import filters, generations, recent_writes
from shared.search.index.filters import Condition
from shared.search.index.generations import Generation
from shared.search.index.hits import RECENT, Hit, key_of, merge_channels, newest_versions
from shared.search.index.missing_points import MissingPoints
from shared.search.index.points import DENSE, KEYWORDS, point_id
from shared.search.index.requests import SparseVector, channel_request, evidence_requests
from shared.search.text import bm25, indexed_text

RESERVED_HITS = 8
_LIVE_CACHE_SECONDS = 2.0
_STAGE = status.NAMES[EMBED.name]
_WIDENING = 10


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """What is searched: the records of one kind and tenant that meet the conditions.

    With `reserve`, the best RESERVED_HITS that also meet these conditions are among the hits. `embed_as_is`
    embeds only the text itself, not also its content words; `keywords_only` leaves the dense channel out.
    A channel returns the usual number of hits, at most `max_hits`, and `more_hits` beyond. Records that never
    change have one `version`: a point of another one is no hit, and hides none. `evidence` are the conditions
    of records that stand for others: they are asked for apart, so that they take no place of a hit.
    """

    tenant: str
    kind: RecordKind
    text: str
    conditions: Sequence[Condition]
    reserve: Sequence[Condition] = ()
    evidence: Sequence[Condition] = ()
    embed_as_is: bool = False
    keywords_only: bool = False
    max_hits: int | None = None
    more_hits: int = 0
    version: int | None = None


@dataclass(slots=True)
class IndexHits:
    """The result of a search. `stages` names the channels that ran, `degraded` those that could not.

    `index` is in `degraded` while points of the tenant are still to be written, `embedding` while records are
    late to be embedded: they are found by keywords alone.

    `limit` is the number of hits that a channel could return. `cut_channels` returned so many, and may have
    more, of at most the score beside them. `vector` is the embedded query, `floor` decides what is relevant.
    `evidence` are the hits of records that stand for others.
    """

    hits: list[Hit] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    limit: int = 0
    cut_channels: dict[str, float] = field(default_factory=dict)
    vector: Vector | None = None
    floor: Floor | None = None
    evidence: list[Hit] = field(default_factory=list)


class SearchIndex:
    """A client that searches the records of one kind and tenant."""

    def __init__(
        self,
        postgres: Postgres,
        qdrant: Qdrant,
        embedder: Embedder | None,
        candidates: int,
        recent_seconds: float,
        missing_points: MissingPoints,
        probe_interval: float = 60,
    ) -> None:
        self.qdrant = qdrant
        self.embedder = embedder
        self._postgres = postgres
        self._candidates = candidates
        self._recent_seconds = recent_seconds
        self._missing_points = missing_points
        self._probe_interval = probe_interval
        self._live: dict[RecordKind, tuple[float, Generation]] = {}

    async def search(self, query: IndexQuery) -> IndexHits:
        """Return the hits of a query, up to a limit per channel, or raise errors.Unavailable."""
        usual = min(self._candidates, query.max_hits or self._candidates)
        result = IndexHits(limit=usual + query.more_hits)
        texts = [query.text] if query.embed_as_is else indexed_text.query_embedding_texts(query.text)
        texts = [] if query.keywords_only else texts
        generation, result.vector = await asyncio.gather(
            self._find_generation(query, result), self._embed_query(texts, result)
        )
        return await self._search_generation(result, generation, query)

    async def _find_generation(self, query: IndexQuery, result: IndexHits) -> Generation:
        generation = await self.live(query.kind)
        # Before the search: a point that is written meanwhile is found, and named as missing all the same.
        missing = await self._missing_points.names(query.tenant, generation.id)
        if query.keywords_only or self.embedder is None:  # no vector is searched
            missing = [name for name in missing if name != "embedding"]
        result.degraded = list(dict.fromkeys([*result.degraded, *missing]))
        return generation

    async def widen(self, query: IndexQuery, found: IndexHits) -> IndexHits:
        """Return the hits of the same query up to ten times the limit. Raises as `search` does."""
        limit = found.limit * _WIDENING
        result = IndexHits(degraded=list(found.degraded), limit=limit, vector=found.vector)
        return await self._search_generation(result, await self.live(query.kind), query)

    async def _search_generation(
        self, result: IndexHits, generation: Generation, query: IndexQuery
    ) -> IndexHits:
        if result.vector is not None and not await self._fits(generation, result.vector):
            # The live generation has vectors of another model: that of the configured one is still building.
            result.vector = None
            result.degraded.append("dense")
        try:
            await self._query(result, generation, query)
        except CollectionNotFound:
            await self._query_current_generation(result, query)
        except errors.Unavailable:
            self._missing_points.look_again()
            raise
        return result

    async def live(self, kind: RecordKind) -> Generation:
        """Return the live generation of a kind; it is cached for a moment.

        A retired generation is still written for longer than that. Raises errors.Unavailable if there is
        no generation yet.
        """
        cached_generation = self._live.get(kind)
        if cached_generation and time.monotonic() - cached_generation[0] < _LIVE_CACHE_SECONDS:
            return cached_generation[1]
        async with self._postgres.across_tenants() as tx:
            generation = await generations.get_live(tx, kind)
        if generation is None:
            raise errors.Unavailable("index", f"no generation for {kind} yet")
        self._live[kind] = (time.monotonic(), generation)
        return generation

    async def _embed_query(self, texts: Sequence[str], result: IndexHits) -> Vector | None:
        if self.embedder is None or not any(text.strip() for text in texts):
            return None
        try:
            return indexed_text.mean_vector(await self.embedder.embed_query(texts))
        except errors.ModelRefused as refusal:
            await model_guard.note_refusal(
                self._postgres, _STAGE, self.embedder.identity, refusal, self._probe_interval
            )
        except errors.Unavailable:
            pass
        result.degraded.append("dense")
        return None

    async def _fits(self, generation: Generation, vector: Vector) -> bool:
        if self.embedder is None:
            return False
        return generation.is_embedded_by(await self.embedder.name(), len(vector))

    async def _query_current_generation(self, result: IndexHits, query: IndexQuery) -> None:
        """Query again, because the cached generation was dropped in the meantime."""
        self._live.pop(query.kind, None)
        self._missing_points.look_again()
        generation = await self._find_generation(query, result)
        try:
            await self._query(result, generation, query)
        except CollectionNotFound as error:
            raise errors.Unavailable("qdrant", str(error)) from error

    async def _query(self, result: IndexHits, generation: Generation, query: IndexQuery) -> None:
        terms = _keyword_vector(query.text)
        channels = {KEYWORDS: terms, DENSE: result.vector}
        vectors = {stage: vector for stage, vector in channels.items() if vector is not None}
        requests = _build_requests(vectors, query, result.limit, self._recent_seconds)
        if requests:
            of_evidence = evidence_requests(vectors, query.tenant, query.evidence, result.limit)
            async with self.qdrant.call_guard():
                points = await self.qdrant.query_batch(
                    generation.collection, [request for _, request in [*requests, *of_evidence]]
                )
            stages = [stage for stage, _ in requests]
            points, evidence_points = points[: len(stages)], points[len(stages) :]
            found_evidence = merge_channels(list(zip(vectors, evidence_points, strict=False)))
            result.evidence = newest_versions(found_evidence)
            found = zip(vectors, points, strict=False)
            result.cut_channels = {s: hits[-1]["score"] for s, hits in found if len(hits) >= result.limit}
            hits = merge_channels(list(zip(stages, points, strict=True)))
            if terms is not None and stages[-1] == RECENT:
                lowest = points[0][-1]["score"] if len(points[0]) >= result.limit else 0.0
                missed = await self._missed_hits(generation, query, terms, points[-2:], hits, lowest)
                hits = [*missed, *hits]
            result.hits = newest_versions(hit for hit in hits if query.version in {None, hit.version})
        result.stages = list(vectors)
        result.floor = floor_of(generation.model, generation.cosine_floor, generation.floor_points)

    async def _missed_hits(
        self,
        generation: Generation,
        query: IndexQuery,
        terms: SparseVector,
        recent: Sequence[Sequence[Json]],
        hits: Sequence[Hit],
        lowest: float,
    ) -> list[Hit]:
        """Return the recent points that match but that the keyword channel has not returned.

        `recent` are the recent points that it finds among the recent ones alone, and all recent points.
        """
        found, all_recent = recent
        if len(found) >= recent_writes.MAX_RECENT:  # it found many, and may have left the others out as worse
            return []
        weights = recent_writes.matching_weights(all_recent, terms["indices"])
        known = {key_of(point) for point in found}
        known |= {(hit.record_id, hit.version) for hit in hits if hit.keyword is not None}
        missed_keys = [key for key in weights if key not in known]
        if not missed_keys:
            return []
        idfs = await self._solve_idfs(generation, query, terms, hits)
        cosines = {(hit.record_id, hit.version): hit.cosine for hit in hits}
        missed = [Hit(*key, recent_writes.score(weights[key], idfs), cosines.get(key)) for key in missed_keys]
        return [hit for hit in missed if (hit.keyword or 0.0) >= lowest]

    async def _solve_idfs(
        self, generation: Generation, query: IndexQuery, terms: SparseVector, hits: Sequence[Hit]
    ) -> dict[int, float]:
        best = sorted((hit.keyword, hit.record_id, hit.version) for hit in hits if hit.keyword is not None)
        scores = {
            point_id(query.tenant, query.kind, record_id, version): score
            for score, record_id, version in best[-recent_writes.SOLVED_HITS :]
        }
        weights = await recent_writes.read_weights(
            self.qdrant, generation.collection, list(scores), terms["indices"]
        )
        return recent_writes.solve_idfs([(weights[id_], scores[id_]) for id_ in weights], terms["indices"])


def _build_requests(
    vectors: Mapping[str, Vector | SparseVector], query: IndexQuery, max_hits: int, recent: float
) -> list[tuple[str, Json]]:
    """Return a request per channel, with `reserve` another one per channel, and one for recent points."""
    tenant = filters.tenant_condition(query.tenant)
    corpus = {"idf": {"corpus": filters.all_of(tenant)}}
    limits = [(filters.all_of([*tenant, *query.conditions]), max_hits)]
    if query.reserve:
        reserved = [*tenant, *query.conditions, *query.reserve]
        limits.append((filters.all_of(reserved), RESERVED_HITS))
    requests = [
        (stage, channel_request(stage, vector, point_filter, limit, corpus if stage == KEYWORDS else None))
        for point_filter, limit in limits
        for stage, vector in vectors.items()
    ]
    if KEYWORDS in vectors and recent > 0:
        conditions = recent_writes.conditions([*tenant, *query.conditions], recent)
        found = channel_request(KEYWORDS, vectors[KEYWORDS], conditions, recent_writes.MAX_RECENT, corpus)
        requests += [(RECENT, found), (RECENT, recent_writes.build_request(conditions))]
    return requests


def _keyword_vector(query: str) -> SparseVector | None:
    terms = bm25.query_vector(query)
    if not terms.indices:
        return None
    return {"indices": list(terms.indices), "values": list(terms.values)}
