"""Redis: desks and windows, nothing that can't be lost or rebuilt.

Values come back as text. The socket time-out bounds what a request may wait because of Redis;
errors surface as errors.Unavailable through `translated`. A connection that Redis has closed (it
was restarted) is opened once more; a time-out is not tried again, or the bound would double.
"""

from typing import Any, Self

import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from shared.foundation import config, errors
from shared.infra.circuit_breaker import CircuitBreaker


def open_redis(settings: config.Settings) -> redis.asyncio.Redis:
    """Connect lazily to the Redis of desks and windows."""
    return redis.asyncio.from_url(
        config.require_setting(settings.redis_url, "LOCI_REDIS_URL"),
        decode_responses=True,
        socket_timeout=settings.redis_timeout,
        socket_connect_timeout=settings.redis_timeout,
        socket_keepalive=True,
        health_check_interval=30,
        retry=_BehindBreaker(),
    )


class _BehindBreaker(Retry):
    """What every command and every connecting passes: after a failure, none is tried for a moment."""

    def __init__(self) -> None:
        super().__init__(NoBackoff(), 1, supported_errors=(exceptions.ConnectionError,))
        self._breaker = CircuitBreaker("redis")

    def __deepcopy__(self, memo: object) -> Self:
        return self  # every connection copies what it is given, and the breaker is one for all

    async def call_with_retry(self, *call: Any, **options: Any) -> Any:
        with self._breaker:
            try:
                return await super().call_with_retry(*call, **options)
            except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
                raise errors.Unavailable("redis", type(error).__name__) from error


class failures_as_unavailable:  # noqa: N801  (reads as a statement: `with translated():`)
    """Turn Redis's own failures into errors.Unavailable."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (exceptions.RedisError, OSError)):
            raise errors.Unavailable("redis", type(error).__name__) from error
