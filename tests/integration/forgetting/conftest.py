"""Fixtures: an agent, and a look at everything that the databases hold of its tenant."""

from collections.abc import AsyncIterator

import pytest

from tests import state
from tests.conftest import Gateway
from tests.journey.agent import Agent


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """Return an agent whose key has every right in a tenant of its own."""
    return Agent(gateway.client, gateway.tenant)


@pytest.fixture
async def inspector(gateway: Gateway) -> AsyncIterator[state.StateInspector]:
    """Yield an inspector that reads everything the databases contain."""
    async with state.watching(gateway.resources.settings) as inspector:
        yield inspector


async def records_with(inspector: state.StateInspector, gateway: Gateway, text: str) -> list[str]:
    """Return the names of the rows, keys and points that contain a text."""
    await gateway.resources.index_writer.close()
    content_by_name = await inspector.tenant_state(gateway.tenant)
    return [name for name, content in content_by_name.items() if text in content or text in name]
