"""DR10: dreams propose skills; a right or a setting publishes them; undo takes them back."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from shared.foundation.stages import DreamPass
from tests import run_pass
from tests.agent import Agent
from tests.conftest import Gateway
from tests.draining import running_without_jobs
from tests.integration.dreams.conftest import create_session, run_dream
from tests.integration.skills.conftest import URL, get, load, put
from tests.integration.skills.proposals import (
    BREAD,
    CONSOLIDATION,
    GAPS,
    MERGED,
    OPTIMISATION,
    PROPOSALS,
    ROLLS,
    decide,
    merge,
    names,
    proposals,
    propose_merge,
    reply,
)
from tests.standins.behaviours import Slow
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT


@pytest.fixture
async def gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str, request: Any
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model; `at_once` publishes proposals at once."""
    at_once = bool(request.node.get_closest_marker("parametrize") and "at_once" in request.node.name)
    settings = make_settings(
        llm_base_url=models.url,
        llm_model="m",
        job_backoff=0.01,
        dream_prompt_tokens=4000,
        skill_publish_proposals=at_once,
    )
    async with running_without_jobs(settings, tenant) as served:
        yield served


async def test_what_is_asked_for_in_two_sessions_is_proposed_and_published_by_a_right(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    sessions = [
        await create_session(gateway, "Please refund the order of the customer.", "Thanks, ask why first."),
        await create_session(gateway, "How do I refund an order of a customer?"),
    ]
    text = {"name": "refund-an-order", "summary": "How to refund.", "content": "Ask why first."}
    models.chat_default = reply(text | {"sessionIds": [sessions[0], "never-shown"]})
    run = await run_dream(gateway, passes=GAPS)
    assert (run["passes"][0]["state"], run["passes"][0]["applied"]) == ("done", {"skill_proposed": 1})
    assert "Please refund the order" in models.chat_calls[-1].prompt
    [proposal] = await proposals(agent)
    assert proposal["evidence"] == [{"session_id": sessions[0]}]
    assert await names(agent) == []
    published = await decide(agent, proposal, "approve")
    assert published["state"] == "approved"
    skill = await get(agent, "refund-an-order")
    assert (skill["content"], skill["written_by"], skill["summary_origin"]) == (
        "Ask why first.",
        "dream",
        "model",
    )
    await decide(agent, proposal, "approve", HTTPStatus.CONFLICT)


async def test_a_request_that_came_up_once_costs_no_call(gateway: Gateway, models: ModelServer) -> None:
    await create_session(gateway, "Please refund the order of the customer.")
    await create_session(gateway, "What is the weather in Oslo?")
    call_count = len(models.chat_calls)
    run = await run_dream(gateway, passes=GAPS)
    assert run["passes"][0]["state"] == "skipped"
    assert len(models.chat_calls) == call_count


async def test_a_gap_never_overwrites_a_skill(gateway: Gateway, agent: Agent, models: ModelServer) -> None:
    await put(agent, "refund-an-order", content="Ours.")
    for _ in range(2):
        await create_session(gateway, "Please refund the order of the customer.")
    models.chat_default = reply({"name": "refund-an-order", "summary": "s", "content": "Theirs."})
    run = await run_dream(gateway, passes=GAPS)
    assert [item["code"] for item in run["passes"][0]["rejections"]] == ["duplicate"]
    assert await proposals(agent) == []


async def test_a_published_merge_keeps_times_uses_and_references(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    _, proposal = await propose_merge(gateway, agent, models)
    for name in ("bake-bread", "bake-rolls"):
        await load(agent, name)
    before = [await get(agent, name) for name in ("bake-bread", "bake-rolls")]
    assert await names(agent) == ["bake-bread", "bake-rolls"]
    await decide(agent, proposal, "approve")
    assert await names(agent) == ["bake"]
    merged = await get(agent, "bake")
    assert merged["created_at"] == min(skill["created_at"] for skill in before)
    assert merged["last_used_at"] >= max(skill["last_used_at"] for skill in before)
    assert merged["see_also"] == ["mill-flour", "shop"]
    found = await agent.request("POST", f"{URL}/search", json={"query": "bake"})
    assert [skill["name"] for skill in found["results"]] == ["bake"]


async def test_a_skill_that_changed_since_is_not_overwritten(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    _, proposal = await propose_merge(gateway, agent, models)
    await put(agent, "bake-rolls", content="Rolls need 20 minutes.")
    await decide(agent, proposal, "approve", HTTPStatus.CONFLICT)
    assert await names(agent) == ["bake-bread", "bake-rolls"]


async def test_undo_brings_back_what_a_published_merge_stood_for(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    run, proposal = await propose_merge(gateway, agent, models)
    await decide(agent, proposal, "approve")
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert (undone["skills"], undone["kept_skills"]) == (["bake"], [])
    assert await names(agent) == ["bake-bread", "bake-rolls"]
    bread = await get(agent, "bake-bread")
    assert (bread["content"], bread["see_also"]) == (BREAD["content"], ["mill-flour", "bake-rolls"])
    assert [item["state"] for item in await proposals(agent, None)] == ["expired"]
    repeated = await run_dream(gateway, passes=CONSOLIDATION)
    assert [item["code"] for item in repeated["passes"][0]["rejections"]] == ["undone_before"]


async def test_undo_keeps_what_somebody_has_changed_since(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    run, proposal = await propose_merge(gateway, agent, models)
    await decide(agent, proposal, "approve")
    await put(agent, "bake", content="Mine now.")
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert [item["name"] for item in undone["kept_skills"]] == ["bake"]
    assert (await get(agent, "bake"))["content"] == "Mine now."


async def test_undo_withdraws_an_open_proposal(gateway: Gateway, agent: Agent, models: ModelServer) -> None:
    run, proposal = await propose_merge(gateway, agent, models)
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    await decide(agent, proposal, "approve", HTTPStatus.CONFLICT)


async def test_what_was_refused_is_not_proposed_again_until_a_skill_changes(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    _, proposal = await propose_merge(gateway, agent, models)
    refused = await decide(agent, proposal, "refuse")
    assert refused["state"] == "refused"
    skipped = await run_dream(gateway, passes=CONSOLIDATION)
    assert skipped["passes"][0]["state"] == "skipped", "nothing has changed"
    await put(agent, "bake-bread", content="Bake at 220 degrees in the Miele oven. Wait.")
    models.chat_default = reply(merge("bake-bread", "bake-rolls", content=f"{MERGED} Wait."))
    await run_dream(gateway, passes=CONSOLIDATION)
    assert len(await proposals(agent)) == 1


async def test_skills_are_never_dropped_or_rewritten_from_a_part(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await put(agent, "bake-bread", **BREAD)
    await put(agent, "bake-rolls", content="Rolls need 18 minutes. " * 2500, summary="Long.")
    await put(agent, "fry", content="Fry.", summary="How to fry.")
    models.chat_default = reply(merge("bake-rolls"), drop=["bake-bread", "fry"])
    run = await run_dream(gateway, passes=CONSOLIDATION)
    rejections = sorted(item["code"] for item in run["passes"][0]["rejections"])
    assert rejections == ["needs_replacement", "needs_replacement", "unknown_id"]
    assert len(models.chat_calls) == 1, "what names no skill that was shown can't be repaired"
    assert "18 minutes" not in models.chat_calls[-1].prompt, "it does not fit whole, so it is left alone"
    assert await proposals(agent) == []


async def test_a_skill_with_a_bad_session_is_proposed_anew(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await put(agent, "bake-bread", **BREAD)
    await put(agent, "fry", content="Fry it.", summary="How to fry.")
    assert (await run_dream(gateway, passes=OPTIMISATION))["passes"][0]["state"] == "skipped"
    session = await agent.session()
    await load(agent, "bake-bread", session=session)
    signal = {"type": "UserThumbsDown", "summary": "it was burnt"}
    await agent.request("POST", f"/v1/sessions/{session}/feedback", json=signal, status=HTTPStatus.CREATED)
    better = f"{BREAD['content']} Look after it."
    models.chat_default = reply(merge(name="bake-bread", content=better))
    await run_dream(gateway, passes=OPTIMISATION)
    prompt = models.chat_calls[-1].prompt
    assert ("it was burnt" in prompt, "Fry it." in prompt) == (True, False)
    [proposal] = await proposals(agent)
    await decide(agent, proposal, "approve")
    assert (await get(agent, "bake-bread"))["content"] == better


@pytest.mark.parametrize("setting", ["at_once"])
async def test_by_a_setting_a_proposal_is_published_at_once(
    gateway: Gateway, agent: Agent, models: ModelServer, setting: str
) -> None:
    await put(agent, "bake-bread", **BREAD)
    await put(agent, "bake-rolls", **ROLLS)
    models.chat_default = reply(merge("bake-bread", "bake-rolls"))
    run = await run_dream(gateway, passes=CONSOLIDATION)
    assert run["passes"][0]["applied"] == {"skill_published": 1}
    assert await names(agent) == ["bake"]
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert undone["skills"] == ["bake"]
    assert await names(agent) == ["bake-bread", "bake-rolls"]


async def test_a_dry_run_proposes_nothing(gateway: Gateway, agent: Agent, models: ModelServer) -> None:
    await put(agent, "bake-bread", **BREAD)
    await put(agent, "bake-rolls", **ROLLS)
    models.chat_default = reply(merge("bake-bread", "bake-rolls"))
    run = await run_dream(gateway, passes=CONSOLIDATION, dry_run=True)
    assert run["passes"][0]["proposed"][0]["name"] == "bake"
    assert await proposals(agent, None) == []


async def test_a_deleted_session_or_skill_takes_its_proposals_along(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await propose_merge(gateway, agent, models)
    await agent.request("DELETE", f"{URL}/bake-rolls")
    assert await proposals(agent, None) == []
    session, _ = [await create_session(gateway, "Please refund the order of the customer.") for _ in range(2)]
    item = {"name": "refund", "summary": "s", "content": "c", "sessionIds": [session]}
    models.chat_default = reply(item)
    await run_dream(gateway, passes=GAPS)
    assert len(await proposals(agent)) == 1
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert await proposals(agent, None) == []


async def test_what_is_deleted_while_the_model_thinks_is_not_proposed(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await put(agent, "bake-bread", **BREAD)
    await put(agent, "bake-rolls", **ROLLS)
    models.chat_default = Slow(2, reply(merge("bake-bread", "bake-rolls")))
    response = await gateway.client.post("/v1/dreams", json={"passes": CONSOLIDATION})
    run_id, call_count = response.json()["id"], len(models.chat_calls)
    task = asyncio.create_task(
        run_pass.run_pass(gateway.resources, gateway.tenant, run_id, DreamPass.CONSOLIDATE_SKILLS)
    )
    await asyncio.to_thread(models.wait_for_calls, call_count + 1, 10, CHAT)
    await agent.request("DELETE", f"{URL}/bake-rolls")
    assert await task == "done"
    assert await proposals(agent, None) == []
    run = await agent.request("GET", f"/v1/dreams/{run_id}")
    assert "Rolls" not in json.dumps(run)


async def test_a_user_bound_key_decides_only_about_its_own(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    _, proposal = await propose_merge(gateway, agent, models)
    path = f"{PROPOSALS}/{proposal['id']}"
    async with await gateway.new_client(user_id="ada") as client:
        assert (await client.post(path, json={"action": "approve"})).status_code == HTTPStatus.FORBIDDEN
        listed = await client.get(PROPOSALS, params={"kind": "skill"})
        assert [item["id"] for item in listed.json()["results"]] == [proposal["id"]]
        other = await client.get(PROPOSALS, params={"user_id": "bob", "kind": "skill"})
        assert other.status_code == HTTPStatus.FORBIDDEN
    async with await gateway.new_client(agent_id="other") as client:
        assert (await client.get(PROPOSALS, params={"kind": "skill"})).json()["results"] == []
        assert (await client.post(path, json={"action": "approve"})).status_code == HTTPStatus.NOT_FOUND
