"""Fixtures: agents at a gateway in this process, and one at a gateway that cannot reach Qdrant."""

from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.foundation import config
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.second_gateway import beside


@pytest.fixture
async def without_index(gateway: Gateway, unused_url: str) -> AsyncIterator[Agent]:
    """Yield an agent of the same tenant at a gateway that cannot reach Qdrant."""
    async with beside(gateway, qdrant_url=unused_url) as agent:
        yield agent


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def module_gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """Yield a gateway for all tests of a module, which keep apart by their scopes."""
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture
def scope() -> dict[str, str]:
    """Return a scope in which nothing is stored."""
    return {"agent_id": f"a-{uuid4().hex[:12]}", "user_id": "ada"}


@pytest.fixture
def keeper(module_gateway: Gateway) -> Agent:
    """Return an agent at the module's gateway."""
    return Agent(module_gateway.client, module_gateway.tenant)
