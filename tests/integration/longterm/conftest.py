"""Fixtures: an agent at a gateway in this process, and one at a gateway that cannot reach Qdrant."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.conftest import Gateway, running_gateway
from tests.journey.agent import Agent


@asynccontextmanager
async def beside(gateway: Gateway, **changes: Any) -> AsyncIterator[Agent]:
    """Open a second gateway with the same databases and tenant but changed settings; yield its agent."""
    settings = gateway.resources.settings.model_copy(update=changes)
    async with running_gateway(settings, gateway.tenant) as second_gateway:
        yield Agent(second_gateway.client, second_gateway.tenant)


@pytest.fixture
async def without_index(gateway: Gateway, unused_url: str) -> AsyncIterator[Agent]:
    """Yield an agent of the same tenant at a gateway that cannot reach Qdrant."""
    async with beside(gateway, qdrant_url=unused_url) as agent:
        yield agent
