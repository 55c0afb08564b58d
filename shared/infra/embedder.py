"""Compute the embeddings of texts through any OpenAI-compatible `/embeddings` endpoint.

A response is accepted only if it cannot damage the index: one vector per text, of the right
dimension, finite and not zero. Anything else means that the endpoint is not what was configured.
`embed` and `embed_query` report that as errors.Unavailable, because the texts are not to blame and
their jobs can wait until the endpoint is repaired.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.foundation import config, errors
from shared.infra.circuit_breaker import CircuitBreaker
from shared.infra.model_endpoint import ModelEndpoint, usage_of
from shared.infra.model_name import ModelName

Vector = list[float]


@dataclass(frozen=True, slots=True)
class EmbeddingReply:
    """The vectors of one call and the usage object that the endpoint reported for it."""

    vectors: list[Vector]
    usage: dict[str, Any]


class Embedder:
    """One embedding model of one endpoint.

    `batch_size` is the number of texts of the next call. It is halved when an answer takes too long, and
    doubled when a whole batch was answered: a slow endpoint would be asked the same for ever, and never be
    done with it in time.
    """

    def __init__(self, endpoint: ModelEndpoint, settings: config.Settings) -> None:
        self._endpoint = endpoint
        self._name = ModelName(endpoint, settings.embedding_model)
        self.identity = self._name.identity
        self._dimension = settings.embedding_dimension
        self.batch_size = self._max_batch_size = settings.embedding_batch
        self.max_chars = settings.embedding_max_chars
        self._query_timeout = settings.query_embedding_timeout
        self._breaker = CircuitBreaker("embedding endpoint", pause=2)

    async def name(self) -> str:
        """Return the name of the model: the setting, or else that of the endpoint's only model."""
        return await self._name.find()

    @property
    def host(self) -> str:
        """The host and port of the endpoint, without credentials."""
        return self._endpoint.host

    @property
    def model(self) -> str:
        """The name of the model, as far as it is known without asking the endpoint."""
        return self._name.last_known

    @property
    def known_name(self) -> str | None:
        """The name of the model if it is known without asking the endpoint."""
        return self._name.known

    @property
    def is_known(self) -> bool:
        """Whether the name and the length of the vectors are known without asking the endpoint."""
        return self._name.known is not None and self._dimension is not None

    async def dimension(self) -> int:
        """Return the length of the vectors: the setting, or else that of a vector from the endpoint."""
        return self._dimension or await self.check()

    async def check(self) -> int:
        """Ask the endpoint for a vector, whatever is known, and return its length."""
        self._dimension = len((await self._embed_or_unavailable(["dimension"], None)).vectors[0])
        return self._dimension

    async def list_models(self) -> list[str]:
        """Return the names of the models that the endpoint lists; none if it has no list."""
        return await self._endpoint.list_models()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, in the order of the texts, with as many calls as needed."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), self.batch_size):
            vectors += (
                await self._embed_or_unavailable(texts[start : start + self.batch_size], None)
            ).vectors
        return vectors

    async def embed_batch(self, texts: Sequence[str]) -> EmbeddingReply:
        """Embed at most `batch_size` texts in one call.

        Workers call `shared.platform.spend.metered_calls` instead, which also records the cost. Raises
        errors.InvalidModelReply if the response cannot be used.
        """
        return await self._request(texts, None)

    async def embed_query(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of a query's texts; the timeout is short because a search waits for them."""
        with self._breaker:
            return (await self._embed_or_unavailable(texts, self._query_timeout)).vectors

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def _embed_or_unavailable(self, texts: Sequence[str], timeout: float | None) -> EmbeddingReply:
        try:
            return await self._request(texts, timeout)
        except errors.InvalidModelReply as error:
            raise errors.Unavailable("embedding endpoint", str(error)) from error

    async def _request(self, texts: Sequence[str], timeout: float | None) -> EmbeddingReply:
        body = {
            "model": await self._name.find(timeout),
            "input": [text[: self.max_chars] for text in texts],
            "encoding_format": "float",
        }
        try:
            response = await self._endpoint.post("embeddings", body, timeout)
        except errors.Unavailable as error:
            if timeout is None and error.may_have_run and isinstance(error.__cause__, TimeoutError):
                self.batch_size = max(1, min(self.batch_size, len(texts)) // 2)
            if isinstance(error, errors.ModelRefused):
                self._name.note_refusal(error)
            raise
        if len(texts) >= self.batch_size:
            self.batch_size = min(2 * self.batch_size, self._max_batch_size)
        usage = usage_of(response)
        try:
            vectors = [self._require_usable(vector) for vector in _parse_vectors(response, len(texts))]
        except errors.InvalidModelReply as error:
            raise errors.InvalidModelReply(str(error), usage=usage) from error
        return EmbeddingReply(vectors, usage)

    def _require_usable(self, vector: Vector) -> Vector:
        if self._dimension is not None and len(vector) != self._dimension:
            raise errors.InvalidModelReply(f"{len(vector)} dimensions instead of {self._dimension}")
        norm = math.sqrt(math.fsum(x * x for x in vector))
        if not math.isfinite(norm) or norm == 0:
            raise errors.InvalidModelReply("a vector that is zero or not finite")
        return vector


def _parse_vectors(response: Any, count: int) -> list[Vector]:
    try:
        rows = sorted(response["data"], key=lambda row: row["index"])
        vectors = [[float(x) for x in row["embedding"]] for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise errors.InvalidModelReply("embeddings of an unknown shape") from error
    if len(vectors) != count or [row["index"] for row in rows] != list(range(count)):
        raise errors.InvalidModelReply(f"{len(vectors)} vectors for {count} texts")
    return vectors


def to_float32_bytes(vector: Vector) -> bytes:
    """Return a vector as 32-bit floats in the byte order of the machine."""
    return array("f", vector).tobytes()


def from_float32_bytes(data: bytes) -> Vector:
    """Return the vector that `to_float32_bytes` converted."""
    return array("f", data).tolist()


def open_embedder(settings: config.Settings) -> Embedder | None:
    """Return the configured embedder, or None; without one, search uses keywords alone."""
    if settings.embedding_base_url is None:
        return None
    endpoint = ModelEndpoint(
        "embedding endpoint",
        settings.embedding_base_url,
        settings.embedding_api_key,
        settings.embedding_timeout,
    )
    return Embedder(endpoint, settings)
