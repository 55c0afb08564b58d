"""DR10: what passes over skills do with answers that are no use as they are, and with what is too long."""

import json
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus

import pytest

from shared.foundation import config
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.draining import drain, drop_jobs, running_without_jobs
from tests.integration.dreams.conftest import create_session, run_dream
from tests.integration.skills.conftest import URL, get, import_zip, load, put
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
from tests.skill_archives import skill_text, zip_of
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call
from workers.sweep import missing_summaries

LOST = "Bake at 220 degrees in the oven. Rolls need 18 minutes."


@pytest.fixture
async def gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model of small prompts."""
    settings = make_settings(
        llm_base_url=models.url, llm_model="m", job_backoff=0.01, dream_prompt_tokens=4000
    )
    async with running_without_jobs(settings, tenant) as served:
        yield served


async def put_two(agent: Agent) -> None:
    await put(agent, "bake-bread", **BREAD)
    await put(agent, "bake-rolls", **ROLLS)


def codes(run: Json) -> list[str]:
    return [item["code"] for item in run["passes"][0]["rejections"]]


async def test_an_answer_that_loses_something_is_repaired_once(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await put_two(agent)
    both = ("bake-bread", "bake-rolls")
    models.chat_replies += [reply(merge(*both, content=LOST)), reply(merge(*both), drop=["bake-bread"])]
    run = await run_dream(gateway, passes=CONSOLIDATION)
    assert (codes(run), run["passes"][0]["applied"]) == (["loses_specifics"], {"skill_proposed": 1})
    assert run["passes"][0]["rejections"][0]["words"] == ["Miele"]
    first, second = [call.body["messages"][-1]["content"] for call in models.chat_calls]
    assert second.startswith(first)
    assert "- bake: it loses names" in second
    assert second.endswith(": Miele")
    [proposal] = await proposals(agent)
    assert (proposal["content"], proposal["replaces"]) == (MERGED, ["bake-bread", "bake-rolls"])


@pytest.mark.parametrize(
    ("second", "code", "calls"),
    [
        (reply(merge("bake-bread", "bake-rolls", content=LOST)), "loses_specifics", 2),
        (Reply("I can't mend it."), "repair_failed", 2),
        (reply(merge("never-shown")), "unknown_id", 2),
    ],
)
async def test_a_repair_that_is_no_better_leaves_the_skills_alone(
    gateway: Gateway, agent: Agent, models: ModelServer, second: Reply, code: str, calls: int
) -> None:
    await put_two(agent)
    models.chat_replies += [reply(merge("bake-bread", "bake-rolls", content=LOST)), second]
    run = await run_dream(gateway, passes=CONSOLIDATION)
    assert codes(run) == ["loses_specifics", code]
    assert len(models.chat_calls) == calls
    assert await proposals(agent) == []


async def test_what_was_accepted_at_once_is_not_offered_to_the_repair(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await put_two(agent)
    better = merge(name="bake-rolls", content="Rolls need 18 minutes. Wait.")
    models.chat_replies += [
        reply(better, merge("bake-bread", content="Bake at 220 degrees.")),
        reply(
            better, merge("bake-bread", "bake-rolls"), merge("bake-bread", content=f"{BREAD['content']} Ok.")
        ),
    ]
    run = await run_dream(gateway, passes=CONSOLIDATION)
    assert codes(run) == ["loses_specifics", "duplicate", "unknown_id"]
    found = {proposal["name"]: proposal["content"] for proposal in await proposals(agent)}
    assert found == {"bake-rolls": better["content"], "bake": f"{BREAD['content']} Ok."}


async def test_a_skill_longer_than_a_prompt_is_in_no_prompt_and_never_rewritten(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    """It has more tokens than any pass may show: none shows a part, and what names it is refused."""
    long = "Marmalade needs 90 minutes. " * 1500
    await put(agent, "marmalade", content=long, summary="How to cook preserves.")
    await put_two(agent)
    session = await agent.session()
    await load(agent, "marmalade", session=session)
    signal = {"type": "UserThumbsDown", "summary": "it was burnt"}
    await agent.request("POST", f"/v1/sessions/{session}/feedback", json=signal, status=HTTPStatus.CREATED)
    forged = [
        merge(name="marmalade", content="Marmalade needs 90 minutes."),
        merge("marmalade", name="preserves", content="Marmalade needs 90 minutes."),
        merge("bake-bread", "marmalade", name="all"),
    ]
    models.chat_default = reply(*forged, drop=["marmalade"])
    optimised = await run_dream(gateway, passes=OPTIMISATION)
    assert (optimised["passes"][0]["state"], models.chat_calls) == ("skipped", [])
    consolidated = await run_dream(gateway, passes=CONSOLIDATION)
    assert codes(consolidated) == ["duplicate", "unknown_id", "unknown_id", "needs_replacement"]
    assert all("Marmalade" not in call.prompt for call in models.chat_calls)
    assert await proposals(agent, None) == []
    assert (await get(agent, "marmalade"))["content"] == long


async def test_a_skill_with_files_is_in_no_prompt_either(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await import_zip(agent, zip_of({"bake-bread/SKILL.md": skill_text("bake-bread"), "bake-bread/a": "x"}))
    await put(agent, "bake-rolls", **ROLLS)
    models.chat_default = reply(merge("bake-bread", "bake-rolls"))
    run = await run_dream(gateway, passes=CONSOLIDATION)
    assert (run["passes"][0]["state"], models.chat_calls) == ("skipped", [])


async def test_parts_that_name_one_skill_give_the_name_once(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    """Two prompts, each with skills of its own; the model wants the name `bake` in both."""
    for name in ("bread", "rolls"):
        await put(agent, f"bake-{name}", content=f"Bake {name}. " * 250, summary=f"How to bake {name}.")

    def answer(call: Call) -> str:
        [shown] = [name for name in ("bread", "rolls") if f"## bake-{name}:" in call.prompt]
        content = f"Bake {shown}. " * 250 + "Wait."
        return json.dumps({"toSave": [merge(f"bake-{shown}", content=content)], "toDelete": []})

    models.chat_default = Reply(answer)
    run = await run_dream(gateway, passes=CONSOLIDATION)
    assert len(models.chat_calls) == 2
    assert (codes(run), run["passes"][0]["applied"]) == (["duplicate"], {"skill_proposed": 1})


async def test_a_gap_is_filled_once_and_with_nothing_that_nobody_said(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    for _ in range(2):
        await create_session(gateway, "Please refund the order of the customer.")
    text = "Look the order up, ask for the reason, then refund the order of the customer."
    models.chat_default = reply(
        {"name": "refund", "summary": "How to refund.", "content": text},
        {"name": "refund", "summary": "How to refund.", "content": f"{text} Then wait."},
        {"name": "refund-orders", "summary": "How to refund.", "content": text},
        {"name": "escalate", "summary": "Whom to ask.", "content": "Ask Grace above 500 €."},
    )
    run = await run_dream(gateway, passes=GAPS)
    assert sorted(codes(run)) == ["adds_specifics", "duplicate", "source_taken"]
    [proposal] = await proposals(agent)
    assert (proposal["name"], proposal["content"]) == ("refund", text)


async def test_the_diff_of_a_run_shows_what_it_proposed_and_what_became_of_it(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    run, proposal = await propose_merge(gateway, agent, models)
    assert await diff(agent, run) == [("bake", "proposed", [])]
    await decide(agent, proposal, "approve")
    assert await diff(agent, run) == [
        ("bake-bread", "deleted", ["bake"]),
        ("bake-rolls", "deleted", ["bake"]),
        ("bake", "created", []),
    ]
    [*_, created] = (await agent.request("GET", f"/v1/dreams/{run['id']}/diff"))["results"]
    assert (created["version"], created["pass"], created["proposal_id"]) == (
        (await get(agent, "bake"))["version"],
        "consolidate_skills",
        proposal["id"],
    )
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert await diff(agent, run) == [("bake", "withdrawn", [])]
    assert await names(agent) == ["bake-bread", "bake-rolls"]


async def test_the_diff_names_a_rewritten_skill_and_a_refused_proposal(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await put_two(agent)
    models.chat_default = reply(
        merge(name="bake-bread", content=f"{BREAD['content']} Wait."),
        merge(name="bake-rolls", content=f"{ROLLS['content']} Wait."),
    )
    run = await run_dream(gateway, passes=CONSOLIDATION)
    rolls, bread = sorted(await proposals(agent), key=lambda item: item["name"], reverse=True)
    await decide(agent, bread, "approve")
    path = f"{PROPOSALS}/{rolls['id']}"
    await agent.request("POST", path, json={"action": "refuse", "reason": "no need"})
    assert await diff(agent, run) == [("bake-bread", "replaced", []), ("bake-rolls", "refused", [])]
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert undone["skills"] == ["bake-bread"]
    assert (await get(agent, "bake-bread"))["content"] == BREAD["content"]


async def diff(agent: Agent, run: Json) -> list[tuple[str, str, list[str]]]:
    results = (await agent.request("GET", f"/v1/dreams/{run['id']}/diff"))["results"]
    assert {change["record"] for change in results} == {"skill"}
    return [(change["entry_id"], change["action"], change.get("successors", [])) for change in results]


async def test_a_summary_by_a_worker_outdates_no_proposal_no_review_and_no_undo(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    """Only the summary is new: what was made from the content still stands for it."""
    for name, text in (("bake-bread", BREAD), ("bake-rolls", ROLLS)):
        await agent.request("PUT", f"{URL}/{name}", json={"content": text["content"]})
    await drop_jobs(gateway.resources, gateway.tenant)
    models.chat_default = reply(merge("bake-bread", "bake-rolls"))
    run = await run_dream(gateway, passes=CONSOLIDATION)
    models.chat_default = Reply('{"summary": "How it is baked"}')
    assert await missing_summaries.enqueue_missing_summaries(gateway.resources, gateway.tenant) == 2
    await drain(gateway.resources)
    assert (await get(agent, "bake-bread"))["summary_origin"] == "model"
    assert (await run_dream(gateway, passes=CONSOLIDATION))["passes"][0]["state"] == "skipped"
    [proposal] = await proposals(agent)
    await decide(agent, proposal, "approve")
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert (await get(agent, "bake-bread"))["summary"] == "How it is baked"
    models.chat_default = reply(merge("bake-bread", "bake-rolls"))
    assert codes(await run_dream(gateway, passes=CONSOLIDATION)) == ["undone_before"]
