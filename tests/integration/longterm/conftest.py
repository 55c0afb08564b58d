"""Fixtures: an agent at a gateway in this process, and one at a gateway that cannot reach Qdrant."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.conftest import Gateway, running_gateway
from tests.journey.agent import Agent


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """Return an agent whose key has every right in a tenant of its own."""
    return Agent(gateway.client, gateway.tenant)


@pytest.fixture
def unused_url() -> str:
    """Return the host and port of an address on this machine that refuses connections."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def beside(gateway: Gateway, **changes: Any) -> AsyncIterator[Agent]:
    """Open a second gateway with the same databases and tenant but changed settings; yield its agent."""
    settings = gateway.resources.settings.model_copy(update=changes)
    async with running_gateway(settings, gateway.tenant) as second_gateway:
        yield Agent(second_gateway.client, second_gateway.tenant)


@pytest.fixture
async def without_index(gateway: Gateway, unused_url: str) -> AsyncIterator[Agent]:
    """Yield an agent of the same tenant at a gateway that cannot reach Qdrant."""
    async with beside(gateway, qdrant_url=f"http://{unused_url}") as agent:
        yield agent
