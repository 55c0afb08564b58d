"""Agents of a gateway in this process, and of one that can't reach the index."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shared.foundation import config
from tests.conftest import Gateway, running_gateway
from tests.journey.agent import Agent


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """Return an agent whose key has every right in a tenant of its own."""
    return Agent(gateway.client, gateway.tenant)


@pytest.fixture
def unused_url() -> str:
    """Return an address of this machine that refuses connections."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{closed.getsockname()[1]}"


@asynccontextmanager
async def beside(gateway: Gateway, **changes: Any) -> AsyncIterator[Agent]:
    """Open another gateway with the same databases and tenant, with changed settings."""
    settings = gateway.resources.settings.model_copy(update=changes)
    async with running_gateway(settings, gateway.tenant) as other:
        yield Agent(other.client, other.tenant)


@pytest.fixture
async def without_index(gateway: Gateway, unused_url: str) -> AsyncIterator[Agent]:
    """Yield the same tenant's agent at a gateway that can't reach Qdrant."""
    async with beside(gateway, qdrant_url=f"http://{unused_url}") as agent:
        yield agent


Settings = Callable[..., config.Settings]
