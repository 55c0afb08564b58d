"""Agents that observe, at a gateway with models and at one without."""

import socket
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from tests.conftest import Gateway, serving
from tests.journey.agent import Agent, Json
from tests.standins.models import ModelServer

SEARCH = "/v1/observations/search"


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """An agent whose key may do everything in a tenant of its own."""
    return Agent(gateway.client, gateway.tenant)


@pytest.fixture
def nowhere() -> str:
    """An address of this machine that refuses."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{closed.getsockname()[1]}"


@pytest.fixture
async def embedding(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> AsyncIterator[Gateway]:
    """A gateway with an embedding model and an index of its own."""
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="m")
    async with serving(settings, tenant) as served:
        yield served


async def observe(agent: Agent, session: str, content: str, kind: str = "fact", **more: Any) -> Json:
    """Report an observation and return it."""
    body, path = {"kind": kind, "content": content, **more}, f"/v1/sessions/{session}/observations"
    return dict(await agent.ask("POST", path, json=body, status=HTTPStatus.CREATED))


async def found(agent: Agent, query: str, **more: Any) -> list[str]:
    """Search a healthy index; return the contents."""
    answer = await agent.ask("POST", SEARCH, json={"query": query, **more})
    assert answer["degraded"] == []
    return [one["content"] for one in answer["results"]]
