"""Run a coroutine with the resources open: what commands that ask the stores do."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.foundation import config
from shared.infra.telemetry import logs
from shared.platform.resources import Resources, open_resources

T = TypeVar("T")


def with_resources(ask: Callable[[Resources], Awaitable[T]]) -> T:
    """Open the resources, await what is asked, close them again."""

    async def whole() -> T:
        settings = config.load(log_level="WARNING")
        logs.set_up(settings)
        async with open_resources(settings) as resources:
            return await ask(resources)

    return asyncio.run(whole())
