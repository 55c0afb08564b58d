"""Dreams forget too: what a run keeps of deleted records goes, and a pass that was thinking drops it."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import select

from shared.dreams.runs import unread_turn_queries
from shared.foundation import config
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass, Pipeline
from shared.jobs.table import job
from tests import run_pass, state
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.idle_sessions import make_idle
from tests.integration.dreams.conftest import execute_run, live, merge_reply, run_dream, save_memories
from tests.integration.forgetting.conftest import records_with
from tests.integration.forgetting.interruptions import delete_while_thinking
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

SECRET = "marmalade"
EPISODE = {
    "content": f"Ada asked for {SECRET}, and it was bought.",
    "category": "episodic/task",
    "importance": 0.6,
    "sessions": ["trip"],
}


@pytest.fixture
async def model_gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model. The tests save memories without enrichment, so only dreams use it."""
    settings = make_settings(llm_base_url=models.url, llm_model="m", job_backoff=0.01)
    async with running_gateway(settings, tenant) as served:
        yield served


@pytest.fixture
async def inspector(model_gateway: Gateway) -> AsyncIterator[state.StateInspector]:
    async with state.watching(model_gateway.resources.settings) as inspector:
        yield inspector


async def _tell(agent: Agent, **scope: Any) -> str:
    session = await agent.session(id="trip", **scope)
    await agent.append_turn(session, f"Please buy {SECRET}.", role="user")
    await agent.append_turn(session, "Bought.")
    return session


@pytest.mark.parametrize("path", ["/v1/sessions/trip", "/v1/users/ada"])
async def test_what_a_pass_learnt_from_turns_that_were_deleted_meanwhile_is_dropped(
    model_gateway: Gateway,
    models: ModelServer,
    inspector: state.StateInspector,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    await _tell(agent, user_id="ada")
    models.chat_default = Reply(json.dumps({"toSave": [EPISODE], "toUpdate": []}))
    delete_while_thinking(monkeypatch, model_gateway, path)
    await _extract_episodes(model_gateway)
    assert models.chat_calls, "the model was asked"
    assert await records_with(inspector, model_gateway, SECRET) == []


_EDIT: dict[str, Any] = {"method": "PATCH", "json": {"content": "Please buy something."}}
_WITHDRAWALS = pytest.mark.parametrize("more", [{}, _EDIT], ids=["delete", "edit"])


@_WITHDRAWALS
async def test_what_a_pass_learnt_from_a_turn_that_was_withdrawn_meanwhile_is_dropped(
    model_gateway: Gateway,
    models: ModelServer,
    inspector: state.StateInspector,
    monkeypatch: pytest.MonkeyPatch,
    more: dict[str, Any],
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    await _tell(agent, user_id="ada")
    models.chat_default = Reply(json.dumps({"toSave": [EPISODE], "toUpdate": []}))
    delete_while_thinking(monkeypatch, model_gateway, "/v1/sessions/trip/turns/1", **more)
    await _extract_episodes(model_gateway)
    assert models.chat_calls, "the model was asked"
    assert await records_with(inspector, model_gateway, SECRET) == []
    async with model_gateway.resources.postgres.for_tenant(model_gateway.tenant) as tx:
        scope, name = Scope(model_gateway.tenant, user_id="ada"), DreamPass.EXTRACT_EPISODES
        unread, _ = await unread_turn_queries.list_oldest_unread(tx, scope, name, 9)
    assert len(unread) == (2 if more else 1), "the turns that are left stay due"


@_WITHDRAWALS
async def test_an_evaluation_of_a_turn_that_was_withdrawn_meanwhile_is_not_stored(
    model_gateway: Gateway, models: ModelServer, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    await _tell(agent)
    await agent.append_turn("trip", "Anything else?")
    await make_idle(
        model_gateway, "trip", idle_seconds=model_gateway.resources.settings.session_idle_seconds + 1
    )
    evaluation = {"summary": f"{SECRET} was bought", "overall_quality": "good"}
    models.chat_default = Reply(json.dumps(evaluation))
    with monkeypatch.context() as patched:
        delete_while_thinking(patched, model_gateway, "/v1/sessions/trip/turns/1", **more)
        await run_dream(model_gateway, passes=["evaluate_sessions"])
    assert (await agent.request("GET", "/v1/feedback"))["results"] == []
    await make_idle(
        model_gateway, "trip", idle_seconds=model_gateway.resources.settings.session_idle_seconds + 1
    )
    await run_dream(model_gateway, passes=["evaluate_sessions"])
    assert len((await agent.request("GET", "/v1/feedback"))["results"]) == 1, "it stayed due"
    await agent.request("DELETE", "/v1/sessions/trip/turns/2")
    assert (await agent.request("GET", "/v1/feedback"))["results"] == [], "it covered that turn"


async def test_an_episode_goes_with_the_last_of_its_turns(
    model_gateway: Gateway, models: ModelServer, inspector: state.StateInspector
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    await _tell(agent, user_id="ada")
    models.chat_default = Reply(json.dumps({"toSave": [EPISODE], "toUpdate": []}))
    assert await _extract_episodes(model_gateway) == "done"
    await agent.append_turn("trip", "Later.")
    [episode] = (await agent.request("GET", "/v1/memories", params={"user_id": "ada"}))["results"]
    assert (episode["source"]["first_seq"], episode["source"]["seq"]) == (1, 2)
    await agent.request("DELETE", "/v1/sessions/trip/turns/1")
    assert (await agent.memory(episode["id"]))["source"]["seq"] == 2
    await agent.request("DELETE", "/v1/sessions/trip/turns/2")
    await agent.request("GET", f"/v1/memories/{episode['id']}", status=404)
    assert await records_with(inspector, model_gateway, SECRET) == []


async def _extract_episodes(gateway: Gateway) -> str:
    body = {"user_id": "ada", "passes": ["extract_episodes"]}
    run_id = (await gateway.client.post("/v1/dreams", json=body)).json()["id"]
    return await run_pass.run_pass(gateway.resources, gateway.tenant, run_id, DreamPass.EXTRACT_EPISODES)


async def test_deleting_the_session_of_an_episode_clears_the_proposals_of_its_run(
    model_gateway: Gateway, models: ModelServer, inspector: state.StateInspector
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    await _tell(agent, user_id="ada")
    models.chat_default = Reply(json.dumps({"toSave": [EPISODE], "toUpdate": []}))
    assert await _extract_episodes(model_gateway) == "done"
    kept = {name.split()[0] for name in await records_with(inspector, model_gateway, SECRET)}
    assert {"dream_pass", "memory", "turn"} <= kept
    await agent.request("DELETE", "/v1/sessions/trip")
    kept = {name.split()[0] for name in await records_with(inspector, model_gateway, SECRET)}
    assert kept - {"loci_memory_1"} == {"memory", "memory_history"}, "the episode itself stays"


async def test_a_merge_with_a_source_that_was_deleted_meanwhile_leaves_no_text_in_its_run(
    model_gateway: Gateway,
    models: ModelServer,
    inspector: state.StateInspector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)
    delete_while_thinking(monkeypatch, model_gateway, f"/v1/memories/{ids[0]}")
    await run_dream(model_gateway, passes=["consolidate"])
    assert await records_with(inspector, model_gateway, "at 12 Rue Neuve") == []
    assert ids[1] in await live(model_gateway), "what was not deleted stays"


async def test_deleting_a_merged_memory_deletes_its_sources_and_its_text_in_the_run(
    model_gateway: Gateway, models: ModelServer, inspector: state.StateInspector
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)
    run = await run_dream(model_gateway, passes=["consolidate"])
    merged = next(id_ for id_ in await live(model_gateway) if id_ not in ids)
    assert await records_with(inspector, model_gateway, "Rue Neuve") != []
    assert (await model_gateway.client.delete(f"/v1/memories/{merged}")).json()["deleted"]
    assert await records_with(inspector, model_gateway, "Rue Neuve") == []
    shown = (await model_gateway.client.get(f"/v1/dreams/{run['id']}")).text
    assert "Rue Neuve" not in shown
    export = await model_gateway.client.get("/v1/memories/export")
    archived = await model_gateway.client.get("/v1/memories", params={"state": "archived"})
    assert "Rue Neuve" not in export.text + archived.text
    assert ids[3] in await live(model_gateway)


async def test_erasing_a_user_deletes_their_runs_and_the_job_that_would_start_the_next(
    model_gateway: Gateway, models: ModelServer, inspector: state.StateInspector
) -> None:
    ids = await save_memories(model_gateway, user_id="ada@example.org")
    models.chat_default = merge_reply(ids)
    await run_dream(model_gateway, user_id="ada@example.org", passes=["consolidate"])
    receipt = (await model_gateway.client.delete("/v1/users/ada@example.org")).json()
    assert receipt["erased"]["dream_runs"] == 1
    assert await records_with(inspector, model_gateway, "Rue Neuve") == []
    assert await records_with(inspector, model_gateway, "ada@example.org") == []


async def test_a_run_of_an_erased_user_ends(model_gateway: Gateway, models: ModelServer) -> None:
    await save_memories(model_gateway, user_id="ada")
    response = await model_gateway.client.post("/v1/dreams", json={"user_id": "ada"})
    run_id = response.json()["id"]
    assert await _dream_jobs(model_gateway) != []
    await model_gateway.client.delete("/v1/users/ada")
    assert await _dream_jobs(model_gateway) == []
    assert (await model_gateway.client.get(f"/v1/dreams/{run_id}")).status_code == 404
    with pytest.raises(AssertionError):
        await execute_run(model_gateway.resources, model_gateway.tenant, run_id)
    assert models.chat_calls == []


async def _dream_jobs(gateway: Gateway) -> list[str]:
    """Return the stages of the jobs of dreams."""
    where = (job.c.tenant == gateway.tenant, job.c.pipeline.not_in([Pipeline.INDEX, Pipeline.REMOVAL]))
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return list(await tx.scalars(select(job.c.stage).where(*where)))
