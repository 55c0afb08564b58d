"""A second gateway of the same tenant, with other settings, as one that cannot reach a database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.agent import Agent
from tests.conftest import Gateway, running_gateway

NOWHERE = "127.0.0.1:9"
"""An address that refuses connections."""
NO_REDIS = {"redis_url": f"redis://{NOWHERE}/0", "broker_url": f"redis://{NOWHERE}/1"}


@asynccontextmanager
async def beside(gateway: Gateway, **changes: Any) -> AsyncIterator[Agent]:
    """Open a second gateway with the same databases and tenant but changed settings; yield its agent."""
    settings = gateway.resources.settings.model_copy(update=changes)
    async with running_gateway(settings, gateway.tenant) as second:
        yield Agent(second.client, second.tenant)
