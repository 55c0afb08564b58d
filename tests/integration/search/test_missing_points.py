"""IX3, IX4: what was saved while Qdrant was away is missed afterwards, and the answer says so."""

from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config, errors
from shared.foundation.stages import RecordKind
from shared.jobs import index_jobs
from shared.lifecycle.reindex import rebuild
from shared.search.index import collections, missing_points, points
from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway
from tests.draining import process_all
from tests.second_gateway import NOWHERE, beside

TEXT = "The heron nests by the weir."


@pytest.fixture
async def gateway(
    make_settings: Callable[..., config.Settings], database: dict[str, str], tenant: str
) -> AsyncIterator[Gateway]:
    """A gateway with a database of its own, because these tests claim jobs."""
    async with running_gateway(make_settings(**database), tenant) as gateway:
        yield gateway


@pytest.fixture
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_points, "_CACHE_SECONDS", 0)


@pytest.fixture
def look_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_points, "_CACHE_SECONDS", 600)


async def _save_memory(agent: Agent) -> None:
    await agent.save(TEXT)


async def _save_turn(agent: Agent) -> None:
    await agent.append_turn(await agent.session(), TEXT)


async def _save_observation(agent: Agent) -> None:
    body = {"kind": "fact", "content": TEXT}
    path = f"/v1/sessions/{await agent.session()}/observations"
    await agent.request("POST", path, json=body, status=201)


async def _save_working(agent: Agent) -> None:
    await agent.put("patrol/river/note", TEXT)


KINDS = {
    "memories": _save_memory,
    "turns": _save_turn,
    "observations": _save_observation,
    "working": _save_working,
}


async def _search(agent: Agent, path: str = "memories") -> Json:
    return dict(await agent.request("POST", f"/v1/{path}/search", json={"query": "heron"}))


async def _save_without_qdrant(gateway: Gateway, path: str = "memories") -> None:
    async with beside(gateway, qdrant_url=f"http://{NOWHERE}") as cut_off:
        await KINDS[path](cut_off)


async def _fail(*_: object) -> None:
    raise errors.Unavailable("qdrant", "away")


@pytest.mark.usefixtures("look_always")
@pytest.mark.parametrize("path", KINDS)
async def test_a_search_names_the_index_until_what_was_saved_without_it_is_in_it(
    agent: Agent, gateway: Gateway, path: str
) -> None:
    await _save_without_qdrant(gateway, path)
    found = await _search(agent, path)
    assert (found["results"], found["degraded"]) == ([], ["index"])
    await process_all(gateway.resources)
    found = await _search(agent, path)
    assert (len(found["results"]), found["degraded"]) == (1, [])


@pytest.mark.usefixtures("look_always")
async def test_a_context_names_the_index_too(agent: Agent, gateway: Gateway) -> None:
    session = await agent.session()
    assert (await agent.context(session, "Where is a heron?"))["degraded"] == []
    await _save_without_qdrant(gateway)
    assert (await agent.context(session, "Where is that heron?"))["degraded"] == ["index"]


@pytest.mark.usefixtures("look_always")
async def test_nobody_learns_of_the_missing_points_of_another_tenant_or_kind(
    agent: Agent, gateway: Gateway
) -> None:
    await _save_without_qdrant(gateway)
    async with await gateway.new_client(tenant="another") as client:
        assert (await _search(Agent(client, "another")))["degraded"] == []
    assert (await _search(agent, "turns"))["degraded"] == []
    assert (await _search(agent))["degraded"] == ["index"]


@pytest.mark.usefixtures("look_once")
async def test_the_process_whose_write_failed_knows_it_at_once(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = await agent.save(TEXT)
    found = await _search(agent)
    assert (len(found["results"]), found["degraded"]) == (1, []), "written, although its job is not confirmed"
    await _change_unwritten(agent, memory["id"], monkeypatch)
    assert (await _search(agent))["degraded"] == ["index"]


@pytest.mark.usefixtures("look_once")
async def test_a_process_whose_search_failed_looks_again(
    agent: Agent, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await _search(agent))["degraded"] == []
    await _save_without_qdrant(gateway)
    with monkeypatch.context() as patch:
        patch.setattr("shared.infra.qdrant.Qdrant.query_batch", _fail)
        assert (await _search(agent))["stages"] == ["postgres"]
    monkeypatch.setattr("shared.infra.circuit_breaker.CircuitBreaker.__enter__", lambda _: None)
    found = await _search(agent)
    assert (found["stages"], found["degraded"]) == (["bm25"], ["index"])


@pytest.mark.usefixtures("look_always")
async def test_a_deletion_without_qdrant_leaves_nothing_to_be_missed(agent: Agent, gateway: Gateway) -> None:
    memory = await agent.save(TEXT)
    await agent.put("patrol/river/note", TEXT)
    async with beside(gateway, qdrant_url=f"http://{NOWHERE}") as cut_off:
        await cut_off.request("DELETE", f"/v1/memories/{memory['id']}")
        await cut_off.request("DELETE", "/v1/working/patrol/river/note")
    for path in ("memories", "working"):
        found = await _search(agent, path)
        assert (found["results"], found["degraded"]) == ([], []), path


@pytest.mark.usefixtures("look_always")
async def test_a_collection_that_was_lost_is_named_as_missing_until_it_is_filled_again(
    agent: Agent, gateway: Gateway
) -> None:
    await agent.save(TEXT)
    resources = gateway.resources
    await resources.index_writer.close()
    await collections.drop_collection(
        resources.qdrant, (await resources.search_index.live(RecordKind.MEMORY)).collection
    )
    await rebuild.prepare_index(resources)
    found = await _search(agent)
    assert (found["results"], found["stages"], found["degraded"]) == ([], ["bm25"], ["index"])
    await process_all(gateway.resources)
    found = await _search(agent)
    assert (len(found["results"]), found["degraded"]) == (1, [])


async def test_a_save_is_answered_although_its_missing_point_cannot_be_noted(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_jobs, "note_failure", _fail)
    await _change_unwritten(agent, (await agent.save(TEXT))["id"], monkeypatch)


async def _change_unwritten(agent: Agent, memory_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change a memory while its point can't be written."""
    with monkeypatch.context() as patch:
        patch.setattr(points, "write_records", _fail)
        await agent.request("PATCH", f"/v1/memories/{memory_id}", json={"content": "A heron and a kite."})
