"""Fixtures: a gateway where an agent has at most five keys, and an agent that uses it."""

from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway

PROFILE = "/v1/agents/support"


@pytest.fixture
async def small_gateway(make_settings: Callable[..., config.Settings], tenant: str) -> AsyncIterator[Gateway]:
    """Start a gateway with a small limit on agents' keys."""
    async with running_gateway(make_settings(agent_max_keys=5, session_max_keys=3), tenant) as gateway:
        yield gateway


@pytest.fixture
def agent(small_gateway: Gateway) -> Agent:
    """Return an agent whose key has all rights in a tenant of its own."""
    return Agent(small_gateway.client, small_gateway.tenant)
