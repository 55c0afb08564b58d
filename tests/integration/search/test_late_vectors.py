"""IX4: records that wait for their vectors for long are found by keywords alone, and the answer says so."""

from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config
from shared.search.index import missing_points
from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway
from tests.draining import drain
from tests.sql import sql
from tests.standins.models import ModelServer

pytestmark = pytest.mark.usefixtures("look_always")


@pytest.fixture
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_points, "_CACHE_SECONDS", 0)


@pytest.fixture
async def gateway(
    make_settings: Callable[..., config.Settings], database: dict[str, str], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """A gateway with an embedder and a database of its own, because these tests claim jobs."""
    settings = make_settings(**database, embedding_base_url=models.url, embedding_model="m", job_backoff=0.01)
    async with running_gateway(settings, tenant) as gateway:
        yield gateway


async def _save(agent: Agent, gateway: Gateway) -> None:
    """Save a memory, and let the worker that would embed it be late."""
    await agent.save("The heron nests by the weir.")
    await gateway.resources.index_writer.close()
    await sql(gateway, "UPDATE job SET created_at = now() - interval '11 seconds' WHERE stage = 'embed'")


async def _search(agent: Agent, path: str = "memories") -> Json:
    return dict(await agent.request("POST", f"/v1/{path}/search", json={"query": "heron"}))


async def test_a_search_and_a_context_name_the_embedding_until_it_is_done(
    agent: Agent, gateway: Gateway
) -> None:
    await _save(agent, gateway)
    found = await _search(agent)
    assert (found["stages"], found["degraded"]) == (["bm25", "dense"], ["embedding"])
    session = await agent.session()
    assert (await agent.context(session, "Where is the heron?"))["degraded"] == ["embedding"]
    assert (await _search(agent, "turns"))["degraded"] == []
    await drain(gateway.resources)
    found = await _search(agent)
    assert (len(found["results"]), found["degraded"]) == (1, [])


async def test_what_was_saved_a_moment_ago_is_not_late(agent: Agent, gateway: Gateway) -> None:
    await agent.save("The heron nests by the weir.")
    await gateway.resources.index_writer.close()
    assert (await _search(agent))["degraded"] == []


async def test_nobody_learns_of_the_late_vectors_of_another_tenant(agent: Agent, gateway: Gateway) -> None:
    await _save(agent, gateway)
    async with await gateway.new_client(tenant="another") as client:
        assert (await _search(Agent(client, "another")))["degraded"] == []


async def test_what_cannot_be_embedded_is_not_awaited(agent: Agent, gateway: Gateway) -> None:
    await _save(agent, gateway)
    await sql(gateway, "UPDATE job SET dead_at = now() WHERE stage = 'embed'")
    assert (await _search(agent))["degraded"] == []


async def test_a_search_without_vectors_misses_none(agent: Agent, gateway: Gateway) -> None:
    await _save(agent, gateway)
    settings = gateway.resources.settings.model_copy(update={"embedding_base_url": None})
    async with running_gateway(settings, gateway.tenant) as served:
        assert (await _search(Agent(served.client, served.tenant)))["degraded"] == []
