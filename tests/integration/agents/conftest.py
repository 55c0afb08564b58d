"""An agent at the door of a gateway where an agent keeps five keys at most."""

from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config
from tests.conftest import Gateway, serving
from tests.journey.agent import Agent

ROOT = "/v1/agents/support"


@pytest.fixture
async def small(make_settings: Callable[..., config.Settings], tenant: str) -> AsyncIterator[Gateway]:
    """A gateway with a small cap on agents' keys."""
    async with serving(make_settings(agent_max_keys=5, session_max_keys=3), tenant) as served:
        yield served


@pytest.fixture
def agent(small: Gateway) -> Agent:
    """An agent whose key may do everything in a tenant of its own."""
    return Agent(small.client, small.tenant)
