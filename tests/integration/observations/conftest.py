"""Agents that add observations, with and without an embedding model."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway
from tests.standins.models import ModelServer

SEARCH = "/v1/observations/search"


@pytest.fixture
async def embedding(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> AsyncIterator[Gateway]:
    """Serve a gateway with an embedding model and its own index."""
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="m")
    async with running_gateway(settings, tenant) as gateway:
        yield gateway


async def add_observation(
    agent: Agent, session: str, content: str, kind: str = "fact", **fields: Any
) -> Json:
    """Report an observation and return it."""
    body, path = {"kind": kind, "content": content, **fields}, f"/v1/sessions/{session}/observations"
    return dict(await agent.request("POST", path, json=body, status=HTTPStatus.CREATED))


async def search_contents(agent: Agent, query: str, **fields: Any) -> list[str]:
    """Search with an available index and return the contents of the results."""
    response = await agent.request("POST", SEARCH, json={"query": query, **fields})
    assert response["degraded"] == []
    return [result["content"] for result in response["results"]]
