"""Text to vectors, through any OpenAI-compatible `/embeddings` endpoint.

A vector is accepted only if it can't spoil the index: as many as were asked for, of the
dimension that was agreed, finite, and not zero. A wrong one means that the endpoint is not
what was configured, which is nobody's record's fault: errors.Unavailable, so that the work
waits until somebody mends the endpoint.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.foundation import config, errors
from shared.infra.circuit_breaker import CircuitBreaker
from shared.infra.model_endpoint import ModelEndpoint, usage_of

Vector = list[float]


@dataclass(frozen=True, slots=True)
class EmbeddingReply:
    """The vectors of one call, and what the endpoint says it used (its own usage object)."""

    vectors: list[Vector]
    usage: dict[str, Any]


class Embedder:
    """One model of one endpoint."""

    def __init__(self, endpoint: ModelEndpoint, settings: config.Settings) -> None:
        self._endpoint = endpoint
        self.model = settings.embedding_model or "default"
        self._dimension = settings.embedding_dimension
        self.batch_size = settings.embedding_batch
        self.max_chars = settings.embedding_max_chars
        self._query_timeout = settings.query_embedding_timeout
        self._breaker = CircuitBreaker("embedding endpoint", pause=2)

    async def dimension(self) -> int:
        """Return the vectors' length, asked from the endpoint when no setting tells it."""
        if self._dimension is None:
            self._dimension = len((await self._ask(["dimension"], None)).vectors[0])
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one unit-comparable vector for each text, in order."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), self.batch_size):
            vectors += (await self._ask(texts[start : start + self.batch_size], None)).vectors
        return vectors

    async def embed_batch(self, texts: Sequence[str]) -> EmbeddingReply:
        """Embed at most `batch` texts in one call.

        Raises errors.BadReply for an answer that can't be used. Workers embed through
        `shared.platform.spend.metered_calls`, which books what it costs.
        """
        return await self._call(texts, None)

    async def embed_query(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of a query's texts; give up early, since somebody waits for the answer."""
        with self._breaker:
            return (await self._ask(texts, self._query_timeout)).vectors

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def _ask(self, texts: Sequence[str], timeout: float | None) -> EmbeddingReply:
        try:
            return await self._call(texts, timeout)
        except errors.InvalidModelReply as error:
            raise errors.Unavailable("embedding endpoint", str(error)) from error

    async def _call(self, texts: Sequence[str], timeout: float | None) -> EmbeddingReply:
        body = {
            "model": self.model,
            "input": [text[: self.max_chars] for text in texts],
            "encoding_format": "float",
        }
        answer = await self._endpoint.post("embeddings", body, timeout)
        usage = usage_of(answer)
        try:
            return EmbeddingReply([self._checked(vector) for vector in _vectors(answer, len(texts))], usage)
        except errors.InvalidModelReply as error:
            raise errors.InvalidModelReply(str(error), usage=usage) from error

    def _checked(self, vector: Vector) -> Vector:
        if self._dimension is not None and len(vector) != self._dimension:
            raise errors.InvalidModelReply(f"{len(vector)} dimensions instead of {self._dimension}")
        norm = math.sqrt(math.fsum(x * x for x in vector))
        if not math.isfinite(norm) or norm == 0:
            raise errors.InvalidModelReply("a vector that is zero or not finite")
        return vector


def _vectors(answer: Any, count: int) -> list[Vector]:
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        vectors = [[float(x) for x in row["embedding"]] for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise errors.InvalidModelReply("embeddings of an unknown shape") from error
    if len(vectors) != count or [row["index"] for row in rows] != list(range(count)):
        raise errors.InvalidModelReply(f"{len(vectors)} vectors for {count} texts")
    return vectors


def to_float32_bytes(vector: Vector) -> bytes:
    """Return a vector as little-endian float32."""
    return array("f", vector).tobytes()


def from_float32_bytes(data: bytes) -> Vector:
    """Return the vector that `packed` made."""
    return array("f", data).tolist()


def open_embedder(settings: config.Settings) -> Embedder | None:
    """Return the configured embedder, or None: then search is by keyword, and nothing is pending."""
    if settings.embedding_base_url is None:
        return None
    endpoint = ModelEndpoint(
        "embedding endpoint",
        settings.embedding_base_url,
        settings.embedding_api_key,
        settings.embedding_timeout,
    )
    return Embedder(endpoint, settings)
