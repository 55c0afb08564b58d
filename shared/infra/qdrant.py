"""Connect to Qdrant, which holds the search index: derived data that can be rebuilt.

The oldest usable server is 1.10, which has batch queries and sparse vectors with IDF. Servers ignore
options that they do not know without an error. The only newer option that Loci sends is the IDF of one
tenant (since 1.19); an older server then uses the IDF of the whole collection. Results must not depend
on any other new option, which is why Loci fuses the channels in its own code.

Points are read and written as plain JSON, because building and validating a model of every point and
condition takes longer than the search. The official client creates and drops collections; it is imported
then, because it needs 36 MiB, and most processes never do that.
"""

import asyncio
import sys
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
import structlog

from shared.foundation import config, errors
from shared.infra.circuit_breaker import CircuitBreaker

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

_KEY_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)
_TRANSIENT_STATUSES = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
log = structlog.get_logger()
_MAX_CONNECTIONS = 64
# Idle connections are closed earlier than by the server (after 5 s), or a call may hit one that is closing.
_IDLE_SECONDS = 2
Json = dict[str, Any]


class CollectionNotFound(errors.LociError):
    """The collection does not exist: the index was lost, or its generation has been dropped."""


class PointNotFound(errors.LociError):
    """A point that a call names does not exist, so nothing was done for it."""


class RequestRefused(errors.LociError):
    """Qdrant refused a request as invalid."""


class ErrorStatus(Exception):
    """Qdrant answered a request with an error."""

    def __init__(self, status: int, content: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.content = content


class Qdrant:
    """A client of Qdrant that fails fast, with the errors of Loci."""

    def __init__(self, settings: config.Settings) -> None:
        self._url = config.require_setting(settings.qdrant_url, "LOCI_QDRANT_URL").rstrip("/")
        self._api_key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
        self._timeout = settings.qdrant_timeout
        self._admin: AsyncQdrantClient | None = None
        self._session: aiohttp.ClientSession | None = None
        self.breaker = CircuitBreaker("qdrant")

    @property
    def admin(self) -> "AsyncQdrantClient":
        """The official client, to create and drop collections, aliases and payload indexes."""
        if self._admin is None:
            import httpx
            from qdrant_client import AsyncQdrantClient

            self._admin = AsyncQdrantClient(
                url=self._url,
                api_key=self._api_key,
                timeout=max(1, round(self._timeout)),
                check_compatibility=False,
                # Without limits, it opens a new connection for every call to a server on this machine.
                limits=httpx.Limits(max_keepalive_connections=8, keepalive_expiry=_IDLE_SECONDS),
            )
        return self._admin

    def call_guard(self, *, timeout: float | None = None) -> "_Guard":
        """Limit the duration of the calls in a block and translate their errors.

        Use it as `async with qdrant.call_guard(): …`; `timeout` is in seconds. Raises errors.Unavailable,
        CollectionNotFound or PointNotFound.
        """
        return _Guard(self.breaker, timeout or self._timeout)

    async def call(self, method: str, path: str, body: Json | None = None) -> Any:
        """Send JSON to a path and return the `result` of the response.

        Call it within `call_guard`. Raises ErrorStatus if Qdrant refuses the request.
        """
        return (await self._send(method, path, body))["result"]

    async def _send(self, method: str, path: str, body: Json | None = None) -> Any:
        data = None if body is None else orjson.dumps(body)
        async with self._open_session().request(method, f"{self._url}/{path}", data=data) as response:
            content = await response.read()
            if response.status != HTTPStatus.OK:
                raise ErrorStatus(response.status, content)
        return orjson.loads(content)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"content-type": "application/json"}
            if self._api_key:
                headers["api-key"] = self._api_key
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, keepalive_timeout=_IDLE_SECONDS),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None),  # `call_guard` limits every call
            )
        return self._session

    async def query_batch(self, collection: str, searches: Sequence[Json]) -> list[list[Json]]:
        """Return the points that each of several searches finds."""
        results = await self.call(
            "POST", f"collections/{collection}/points/query/batch", {"searches": searches}
        )
        return [result["points"] for result in results]

    async def version(self) -> str:
        """Return the server's version."""
        await self.ping()
        async with self.call_guard():
            return str((await self._send("GET", ""))["version"])

    async def ping(self) -> None:
        """Raise errors.Unavailable unless the server responds and accepts the API key.

        The collections are listed, because a server tells its version without a key.
        """
        async with self.call_guard():
            await self.call("GET", "collections")

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
        if self._admin is not None:
            await self._admin.close()


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
    error = _without_official_type(error)
    if isinstance(error, ErrorStatus):
        if error.status == HTTPStatus.NOT_FOUND:
            if b"point with id" in error.content.lower():
                return PointNotFound("a point of the index is missing")
            return CollectionNotFound("a collection of the index is missing")
        if error.status in _KEY_REFUSED:
            reason = f"it refuses the API key (LOCI_QDRANT_API_KEY) with status {error.status}"
            log.error("qdrant_key_refused", status=error.status)
            return errors.Unavailable("qdrant", reason)
        if error.status in _TRANSIENT_STATUSES or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return errors.Unavailable("qdrant", f"status {error.status}")
    if isinstance(error, _FAILURES):
        return errors.Unavailable("qdrant", type(error).__name__)
    return None


def _without_official_type(error: BaseException) -> BaseException:
    """Return an error of the official client as one of this module. Without its import there is none."""
    exceptions = sys.modules.get("qdrant_client.http.exceptions")
    if exceptions is None:
        return error
    if isinstance(error, exceptions.UnexpectedResponse):
        return ErrorStatus(error.status_code or HTTPStatus.BAD_GATEWAY, error.content)
    if isinstance(error, exceptions.ResponseHandlingException):
        return ConnectionError(type(error.source).__name__)
    return error
