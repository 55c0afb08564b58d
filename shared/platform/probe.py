"""Ask each database whether it answers."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from shared.foundation import errors
from shared.infra import redis as redis_client
from shared.platform.resources import Resources

_TIMEOUT_SECONDS = 3.0


async def database_states(resources: Resources) -> dict[str, str]:
    """Return "ok", or the reason why it does not answer, for `postgres`, `redis` and `qdrant`."""
    probes = {
        "postgres": resources.postgres.ping(),
        "redis": _ping_redis(resources),
        "qdrant": resources.qdrant.ping(),
    }
    return dict(zip(probes, await asyncio.gather(*map(_state_of, probes.values())), strict=True))


async def _ping_redis(resources: Resources) -> None:
    with redis_client.failures_as_unavailable():
        await resources.redis.ping()


async def _state_of(probe: Awaitable[Any]) -> str:
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await probe
    except (errors.LociError, TimeoutError) as error:
        return str(error) or "no answer in time"
    return "ok"
