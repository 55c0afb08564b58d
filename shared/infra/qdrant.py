"""Connect to Qdrant, which holds the search index: derived data that can be rebuilt.

The oldest usable server is 1.10, which has batch queries and sparse vectors with IDF. Servers ignore
options that they do not know without an error. The only newer option that Loci sends is the IDF of one
tenant (since 1.19); an older server then uses the IDF of the whole collection. Results must not depend
on any other new option, which is why Loci fuses the channels in its own code.
"""

import asyncio
from collections.abc import Sequence

import httpx
import structlog
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from shared.foundation import config, errors
from shared.infra.circuit_breaker import CircuitBreaker

_KEY_REFUSED = {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}
_TRANSIENT_STATUSES = {httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS}
log = structlog.get_logger()
# Without limits, the client opens a new connection for every call to a server on this machine. Idle
# connections are closed earlier than by the server (after 5 s), or a call may hit one that is closing.
_CONNECTIONS = httpx.Limits(max_connections=64, max_keepalive_connections=32, keepalive_expiry=2)


class CollectionNotFound(errors.LociError):
    """The collection does not exist: the index was lost, or its generation has been dropped."""


class PointNotFound(errors.LociError):
    """A point that a call names does not exist, so nothing was done for it."""


class RequestRefused(errors.LociError):
    """Qdrant refused a request as invalid."""


class Qdrant:
    """A client of Qdrant that fails fast, with the errors of Loci."""

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
        """Limit the duration of the calls in a block and translate their errors.

        Use it as `async with qdrant.call_guard(): …`; `timeout` is in seconds. Raises errors.Unavailable,
        CollectionNotFound or PointNotFound.
        """
        return _Guard(self.breaker, timeout or self._timeout)

    async def query_batch(
        self, collection: str, requests: Sequence[models.QueryRequest]
    ) -> list[list[models.ScoredPoint]]:
        """Return the points that each of several queries finds.

        This calls the client's lower level. The upper level copies every request first, to look for
        texts that it could embed, and that takes longer than the search.
        """
        response = await self.client.http.search_api.query_batch_points(
            collection, query_request_batch=models.QueryRequestBatch(searches=list(requests))
        )
        return [result.points for result in response.result or []]

    async def version(self) -> str:
        """Return the server's version."""
        await self.ping()
        async with self.call_guard():
            return (await self.client.info()).version

    async def ping(self) -> None:
        """Raise errors.Unavailable unless the server responds and accepts the API key.

        The collections are listed, because a server tells its version without a key.
        """
        async with self.call_guard():
            await self.client.get_collections()

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
        except TimeoutError as timeout_error:
            error = timeout_error
        if error is None:
            return
        translated_error = _translate(error)
        if translated_error is not None:
            self._breaker.__exit__(type(translated_error), translated_error, None)
            raise translated_error from error


def _translate(error: BaseException) -> errors.LociError | None:
    if isinstance(error, UnexpectedResponse):
        if error.status_code == httpx.codes.NOT_FOUND:
            if b"point with id" in error.content.lower():
                return PointNotFound("a point of the index is missing")
            return CollectionNotFound("a collection of the index is missing")
        if error.status_code in _KEY_REFUSED:
            reason = f"it refuses the API key (LOCI_QDRANT_API_KEY) with status {error.status_code}"
            log.error("qdrant_key_refused", status=error.status_code)
            return errors.Unavailable("qdrant", reason)
        if (
            error.status_code is None
            or error.status_code in _TRANSIENT_STATUSES
            or error.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
        ):
            return errors.Unavailable("qdrant", f"status {error.status_code}")
    if isinstance(error, (ResponseHandlingException, httpx.HTTPError, TimeoutError, OSError)):
        return errors.Unavailable("qdrant", type(error).__name__)
    return None
