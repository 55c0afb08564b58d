"""Embeddings and imports drop what was deleted since they read it."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import text

from shared.foundation import config
from shared.lifecycle.transfer import memory_lines
from shared.platform.spend import metered_calls
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.draining import process_all
from tests.standins.models import ModelServer


@pytest.fixture
async def embedding_gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with an embedding model and a database of its own."""
    endpoint = {"embedding_base_url": models.url, "embedding_model": "e", "embedding_dimension": 64}
    async with running_gateway(make_settings(apart=True, **endpoint), tenant) as served:
        yield served


async def _count_cached(gateway: Gateway) -> int:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return int(await tx.scalar(text("SELECT count(*) FROM embedding_cache")) or 0)


@pytest.mark.parametrize("is_deleted", [False, True], ids=["kept", "deleted meanwhile"])
async def test_a_vector_of_a_record_that_was_deleted_meanwhile_is_not_cached(
    embedding_gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    is_deleted: bool,  # noqa: FBT001
) -> None:
    agent = Agent(embedding_gateway.client, embedding_gateway.tenant)
    memory = await agent.save("The jar holds marmalade.")
    embed_texts = metered_calls.embed

    async def embed_and_delete(*arguments: Any) -> Any:
        outcomes = await embed_texts(*arguments)
        if is_deleted:
            await agent.request("DELETE", f"/v1/memories/{memory['id']}")
        return outcomes

    monkeypatch.setattr("shared.platform.spend.metered_calls.embed", embed_and_delete)
    await process_all(embedding_gateway.resources)
    assert await _count_cached(embedding_gateway) == (0 if is_deleted else 1)


async def test_a_cached_vector_is_deleted_with_its_record(embedding_gateway: Gateway) -> None:
    agent = Agent(embedding_gateway.client, embedding_gateway.tenant)
    memory = await agent.save("The jar holds marmalade.")
    session = await agent.session()
    await agent.append_turn(session, "The lid is red.")
    await process_all(embedding_gateway.resources)
    assert await _count_cached(embedding_gateway) == 2
    await agent.request("DELETE", f"/v1/memories/{memory['id']}")
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert await _count_cached(embedding_gateway) == 0


async def test_vectors_of_working_memory_are_not_cached(embedding_gateway: Gateway) -> None:
    agent = Agent(embedding_gateway.client, embedding_gateway.tenant)
    await agent.put("session/trip/note", "The jar holds marmalade.")
    await process_all(embedding_gateway.resources)
    assert await _count_cached(embedding_gateway) == 0


@pytest.mark.parametrize("path", ["/v1/users/ada", "/v1/agents/default"])
async def test_an_import_stops_when_its_user_is_erased(
    agent: Agent, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(memory_lines, "_BATCH", 1)
    import_batch = memory_lines.import_batch.import_batch  # type: ignore[attr-defined]

    async def import_and_erase(*arguments: Any, **options: Any) -> Any:
        plan = await import_batch(*arguments, **options)
        monkeypatch.setattr("shared.lifecycle.transfer.import_batch.import_batch", import_batch)
        await agent.request("DELETE", path)
        return plan

    monkeypatch.setattr("shared.lifecycle.transfer.import_batch.import_batch", import_and_erase)
    lines = "\n".join(f'{{"id": "{n:012x}", "content": "Jar {n}."}}' for n in range(3))
    response = await agent.client.post("/v1/memories/import?user_id=ada", content=lines.encode())
    assert response.status_code == HTTPStatus.CONFLICT, response.text
    listing = await agent.request("GET", "/v1/memories", params={"user_id": "ada"})
    assert listing["results"] == []
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        assert await tx.scalar(text("SELECT count(*) FROM memory")) == 0
