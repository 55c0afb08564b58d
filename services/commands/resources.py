"""The resources of a command that asks the databases, and the caller that it acts as."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.foundation import config
from shared.foundation.scope import Caller
from shared.infra.telemetry import logs
from shared.platform.auth.api_keys import RIGHTS
from shared.platform.resources import Resources, open_resources

T = TypeVar("T")
ACTOR = "command-line"


def command_line_caller(tenant: str) -> Caller:
    """Return the caller that commands act as: one with every right in a tenant."""
    return Caller(ACTOR, tenant, frozenset(RIGHTS))


def with_resources(use: Callable[[Resources], Awaitable[T]]) -> T:
    """Open the resources, return what `use` returns, and close them. Only warnings are logged."""

    async def open_and_use() -> T:
        settings = config.load(log_level="WARNING")
        logs.set_up(settings)
        async with open_resources(settings) as resources:
            return await use(resources)

    return asyncio.run(open_and_use())
