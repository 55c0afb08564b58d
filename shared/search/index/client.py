"""Ask the index: one batch request, both channels, filtered to a tenant by construction.

The answer is only a list of who might match. Every hit is read again from its own store, so a
stale, deleted or foreign point yields nothing. IDF is taken over the tenant's own records where
the server can (since 1.19), so that one tenant's words don't change another's ranking; older
servers ignore the wish and take the collection's.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qdrant_client import models

from shared.foundation import errors
from shared.foundation.stages import RecordKind
from shared.infra.embedder import Embedder, Vector
from shared.infra.postgres import Postgres
from shared.infra.qdrant import CollectionNotFound, Qdrant
from shared.search.index import filters, generations
from shared.search.index.generations import Generation
from shared.search.text import bm25, indexed_text

RESERVED_HITS = 8
_REMEMBERED = 2.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that a channel found: its ref, the version found, and the raw scores."""

    record_id: str
    version: int
    keyword: float | None
    cosine: float | None


@dataclass(slots=True)
class IndexHits:
    """What the index answered. `stages` names the channels that ran, `degraded` what was missing."""

    hits: list[Hit] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


class SearchIndex:
    """The searchable side of every kind of record."""

    def __init__(
        self, postgres: Postgres, qdrant: Qdrant, embedder: Embedder | None, candidates: int
    ) -> None:
        self.qdrant = qdrant
        self.embedder = embedder
        self._postgres = postgres
        self._candidates = candidates
        self._live: dict[RecordKind, tuple[float, Generation]] = {}

    async def search(
        self,
        tenant: str,
        kind: RecordKind,
        query: str,
        conditions: Sequence[models.Condition],
        reserve: Sequence[models.Condition] = (),
        *,
        embed_query_as_is: bool = False,
    ) -> IndexHits:
        """Return up to N hits per channel among a tenant's records that meet the conditions.

        With `reserve`, the best few that meet it too are among the hits however many others
        are better. `literal` embeds the query as it stands, without its statement form.
        Raises errors.Unavailable when the index can't be asked: the caller has a fallback.
        """
        found = IndexHits()
        generation, vector = await asyncio.gather(
            self.live(kind),
            self._vector([query] if embed_query_as_is else indexed_text.query_embedding_texts(query), found),
        )
        if vector is not None and not self._fits(generation, vector):
            # The configured model is not the one whose vectors are here: its generation is being built.
            vector = None
            found.degraded.append("dense")
        wanted = _Wanted(filters.tenant_condition(tenant), conditions, reserve)
        try:
            await self._ask(found, generation, query, vector, wanted)
        except CollectionNotFound:
            self._live.pop(kind, None)
            generation = await self.live(kind)
            try:
                await self._ask(found, generation, query, vector, wanted)
            except CollectionNotFound as error:
                raise errors.Unavailable("qdrant", str(error)) from error
        return found

    async def live(self, kind: RecordKind) -> Generation:
        """Return the generation that is read, remembered for a moment.

        A remembered one is still written for longer than that after it is retired.
        """
        remembered = self._live.get(kind)
        if remembered and time.monotonic() - remembered[0] < _REMEMBERED:
            return remembered[1]
        async with self._postgres.across_tenants() as connection:
            found = await generations.live(connection, kind)
        if found is None:
            raise errors.Unavailable("index", f"no generation for {kind} yet")
        self._live[kind] = (time.monotonic(), found)
        return found

    async def _vector(self, passages: Sequence[str], found: IndexHits) -> Vector | None:
        if self.embedder is None or not any(passage.strip() for passage in passages):
            return None
        try:
            return indexed_text.mean_vector(await self.embedder.embed_query(passages))
        except errors.Unavailable:
            found.degraded.append("dense")
            return None

    def _fits(self, generation: Generation, vector: Vector) -> bool:
        return self.embedder is not None and generation.is_embedded_by(self.embedder.model, len(vector))

    async def _ask(
        self, found: IndexHits, generation: Generation, query: str, vector: Vector | None, wanted: "_Wanted"
    ) -> None:
        channels = {"bm25": _keyword_vector(query), "dense": vector}
        asked = {stage: each for stage, each in channels.items() if each is not None}
        requests = self._requests(asked, wanted)
        if requests:
            async with self.qdrant.call_guard():
                answers = await self.qdrant.query_batch(
                    generation.collection, [request for _, request in requests]
                )
            stages = [stage for stage, _ in requests]
            found.hits = _merged(list(zip(stages, answers, strict=True)))
        found.stages = list(asked)

    def _requests(
        self, asked: Mapping[str, Vector | models.SparseVector], wanted: "_Wanted"
    ) -> list[tuple[str, models.QueryRequest]]:
        corpus = models.IdfCorpusParams(corpus=models.Filter(must=wanted.tenant))
        selections = [(models.Filter(must=[*wanted.tenant, *wanted.conditions]), self._candidates)]
        if wanted.reserve:
            reserved = [*wanted.tenant, *wanted.conditions, *wanted.reserve]
            selections.append((models.Filter(must=reserved), RESERVED_HITS))
        return [
            (stage, _request(stage, vector, within, limit, corpus if stage == "bm25" else None))
            for within, limit in selections
            for stage, vector in asked.items()
        ]


@dataclass(frozen=True, slots=True)
class _Wanted:
    tenant: list[models.Condition]
    conditions: Sequence[models.Condition]
    reserve: Sequence[models.Condition]


def _keyword_vector(query: str) -> models.SparseVector | None:
    terms = bm25.query_vector(query)
    if not terms.indices:
        return None
    return models.SparseVector(indices=list(terms.indices), values=list(terms.values))


def _request(
    stage: str,
    vector: Vector | models.SparseVector,
    within: models.Filter,
    limit: int,
    corpus: models.IdfCorpusParams | None,
) -> models.QueryRequest:
    return models.QueryRequest(
        query=vector,
        using=stage,
        filter=within,
        params=models.SearchParams(idf=corpus) if corpus else None,
        limit=limit,
        with_payload=["record_id", "version"],
    )


def _merged(answers: Sequence[tuple[str, Sequence[models.ScoredPoint]]]) -> list[Hit]:
    scores: dict[tuple[str, int], dict[str, float]] = {}
    for stage, answer in answers:
        for point in answer:
            if point.payload:
                key = (point.payload["record_id"], point.payload["version"])
                scores.setdefault(key, {})[stage] = point.score
    return [
        Hit(record_id, version, both.get("bm25"), both.get("dense"))
        for (record_id, version), both in scores.items()
    ]
