"""Qdrant: the index, derived from Postgres and Redis and never trusted for truth.

Oldest server that has what we use: 1.10 (batch query, sparse IDF). Older servers silently ignore
newer options; the only one we send (IDF by tenant, since 1.19) then ranks by the collection's
statistics, so no other option may be relied upon. Fusion is our own code for that reason.
"""

import asyncio
from collections.abc import Sequence

import httpx
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from shared.foundation import config, errors
from shared.infra.circuit_breaker import CircuitBreaker

# The client opens a connection for every call to a server on this machine unless told otherwise. They are
# let go before the server does so (5 s there), or a call now and then meets one that is just closing.
_CONNECTIONS = httpx.Limits(max_connections=64, max_keepalive_connections=32, keepalive_expiry=2)


class CollectionNotFound(errors.LociError):
    """The collection is not there: the index was lost, or its generation has been dropped."""


class PointNotFound(errors.LociError):
    """A point that a call names is not there: nothing was done for it."""


class RequestRefused(errors.LociError):
    """Qdrant answered that a request can't be carried out as it stands."""


class Qdrant:
    """A connection to Qdrant that fails fast and in our own words."""

    def __init__(self, settings: config.Settings) -> None:
        self.client = AsyncQdrantClient(
            url=config.require_setting(settings.qdrant_url, "LOCI_QDRANT_URL"),
            api_key=settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None,
            timeout=max(1, round(settings.qdrant_timeout)),
            check_compatibility=False,
            limits=_CONNECTIONS,
        )
        self.breaker = CircuitBreaker("qdrant")
        self._timeout = settings.qdrant_timeout

    def call_guard(self, *, timeout: float | None = None) -> "_Guard":
        """Bound and translate the calls of a block: `async with qdrant.guarded(): …`."""
        return _Guard(self.breaker, timeout or self._timeout)

    async def query_batch(
        self, collection: str, requests: Sequence[models.QueryRequest]
    ) -> list[list[models.ScoredPoint]]:
        """Return the points that each of several queries finds.

        Asked of the client's lower half: the upper copies every request first, to look for texts
        that it might embed, and takes longer over that than the server over the search.
        """
        answer = await self.client.http.search_api.query_batch_points(
            collection, query_request_batch=models.QueryRequestBatch(searches=list(requests))
        )
        return [one.points for one in answer.result or []]

    async def version(self) -> str:
        """Return the server's version."""
        async with self.call_guard():
            return (await self.client.info()).version

    async def ping(self) -> None:
        """Raise errors.Unavailable unless the server answers."""
        async with self.call_guard():
            await self.client.info()

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()


class _Guard:
    def __init__(self, breaker: CircuitBreaker, timeout: float) -> None:
        self._breaker = breaker
        self._limit = asyncio.timeout(timeout)

    async def __aenter__(self) -> None:
        self._breaker.__enter__()
        await self._limit.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        try:
            await self._limit.__aexit__(kind, error, trace)  # type: ignore[arg-type]
        except TimeoutError as late:
            error = late
        if error is None:
            return
        told = _told(error)
        if told is not None:
            self._breaker.__exit__(type(told), told, None)
            raise told from error


def _told(error: BaseException) -> errors.LociError | None:
    if isinstance(error, UnexpectedResponse):
        if error.status_code == httpx.codes.NOT_FOUND:
            if b"point with id" in error.content.lower():
                return PointNotFound("a point of the index is missing")
            return CollectionNotFound("a collection of the index is missing")
        if error.status_code is None or error.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            return errors.Unavailable("qdrant", f"status {error.status_code}")
    if isinstance(error, (ResponseHandlingException, httpx.HTTPError, TimeoutError, OSError)):
        return errors.Unavailable("qdrant", type(error).__name__)
    return None
