"""A gateway with a model stand-in, whose notes are enriched in the test's own process."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.foundation import config
from tests.conftest import Gateway
from tests.draining import drain, running_without_jobs
from tests.memory_pages import list_memories
from tests.standins.models import ModelServer


@pytest.fixture
async def enricher(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model."""
    settings = make_settings(llm_base_url=models.url, llm_model="m", llm_max_tokens=500, job_backoff=0.01)
    async with running_without_jobs(settings, tenant) as served:
        yield served


async def save(gateway: Gateway, content: str, **more: Any) -> str:
    """Save a note and return its id."""
    response = await gateway.client.post("/v1/memories", json={"content": content, **more})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def enrich(gateway: Gateway, content: str, **more: Any) -> dict[str, Any]:
    """Save a note, process what is due, and return the note."""
    memory_id = await save(gateway, content, **more)
    await drain(gateway.resources)
    return await load(gateway, memory_id)


async def load(gateway: Gateway, memory_id: str) -> dict[str, Any]:
    """Return a memory."""
    return dict((await gateway.client.get(f"/v1/memories/{memory_id}")).json())


async def contents(gateway: Gateway, memory_ids: list[str]) -> list[str]:
    """Return the contents of live memories."""
    live_contents = {memory["id"]: memory["content"] for memory in await list_memories(gateway.client)}
    return [live_contents[memory_id] for memory_id in memory_ids]


async def live(gateway: Gateway) -> list[str]:
    """Return the contents of all live memories."""
    return [memory["content"] for memory in await list_memories(gateway.client)]
