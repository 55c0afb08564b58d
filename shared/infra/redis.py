"""Connect to Redis, which holds working memory, conversation windows and `tmp` stores.

Values are returned as text. The socket timeout limits how long a request may wait for Redis. Failures
become errors.Unavailable. A connection that Redis has closed, as after a restart, is opened once more.
A call that timed out is not repeated, because that would double the limit.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Self

import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from shared.foundation import config, errors
from shared.infra.circuit_breaker import CircuitBreaker

_Call = Callable[[], Awaitable[Any]]


def open_redis(settings: config.Settings) -> redis.asyncio.Redis:
    """Return a client of the Redis at LOCI_REDIS_URL; it connects with the first command."""
    return redis.asyncio.from_url(
        config.require_setting(settings.redis_url, "LOCI_REDIS_URL"),
        decode_responses=True,
        socket_timeout=settings.redis_timeout,
        socket_connect_timeout=settings.redis_timeout,
        socket_keepalive=True,
        health_check_interval=30,
        retry=_RetryWithBreaker(),
    )


class _RetryWithBreaker(Retry):
    """The retry policy of every command and connection attempt: it refuses them while the breaker is open."""

    def __init__(self) -> None:
        super().__init__(NoBackoff(), 1, supported_errors=(exceptions.ConnectionError,))
        self._breaker = CircuitBreaker("redis")

    def __deepcopy__(self, memo: object) -> Self:
        return self  # every connection copies its retry policy, but all of them must share the breaker

    async def call_with_retry(self, do: _Call, *call: Any, **options: Any) -> Any:
        with self._breaker:
            try:
                return await super().call_with_retry(lambda: _noticing_closed_transport(do), *call, **options)
            except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
                raise errors.Unavailable("redis", type(error).__name__) from error


async def _noticing_closed_transport(do: _Call) -> Any:
    """Await a call. uvloop refuses to write to a connection that Redis has closed by a RuntimeError."""
    try:
        return await do()
    except RuntimeError as error:
        if "the handler is closed" not in str(error):
            raise
        raise exceptions.ConnectionError(str(error)) from error


class failures_as_unavailable:  # noqa: N801  (read as a statement: `with failures_as_unavailable():`)
    """A context manager that turns the failures of Redis into errors.Unavailable."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (exceptions.RedisError, OSError)):
            raise errors.Unavailable("redis", type(error).__name__) from error
