"""Open the resources for a command that asks the databases."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.foundation import config
from shared.infra.telemetry import logs
from shared.platform.resources import Resources, open_resources

T = TypeVar("T")


def with_resources(use: Callable[[Resources], Awaitable[T]]) -> T:
    """Open the resources, return what `use` returns, and close them. Only warnings are logged."""

    async def open_and_use() -> T:
        settings = config.load(log_level="WARNING")
        logs.set_up(settings)
        async with open_resources(settings) as resources:
            return await use(resources)

    return asyncio.run(open_and_use())
