"""Redis: desks and windows, nothing that can't be lost or rebuilt.

Values come back as text. The socket time-out bounds what a request may wait because of Redis;
errors surface as errors.Unavailable through `translated`. A connection that Redis has closed (it
was restarted) is opened once more; a time-out is not tried again, or the bound would double.
"""

import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from shared import config, errors


def open_redis(settings: config.Settings) -> redis.asyncio.Redis:
    """Connect lazily to the Redis of desks and windows."""
    return redis.asyncio.from_url(
        config.required(settings.redis_url, "LOCI_REDIS_URL"),
        decode_responses=True,
        socket_timeout=settings.redis_timeout,
        socket_connect_timeout=settings.redis_timeout,
        socket_keepalive=True,
        health_check_interval=30,
        retry=Retry(NoBackoff(), 1, supported_errors=(exceptions.ConnectionError,)),
    )


class translated:  # noqa: N801  (reads as a statement: `with translated():`)
    """Turn Redis's own failures into errors.Unavailable."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (exceptions.RedisError, OSError)):
            raise errors.Unavailable("redis", type(error).__name__) from error
