"""Run a coroutine with the resources open: what commands that ask the stores do."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared import config
from shared.resources import Resources, open_resources
from shared.telemetry import logs

T = TypeVar("T")


def with_resources(ask: Callable[[Resources], Awaitable[T]]) -> T:
    """Open the resources, await what is asked, close them again."""

    async def whole() -> T:
        settings = config.load(log_level="WARNING")
        logs.set_up(settings)
        async with open_resources(settings) as resources:
            return await ask(resources)

    return asyncio.run(whole())
