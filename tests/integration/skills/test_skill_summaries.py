"""SK1: a worker writes the summary that a skill came without, and never in the place of somebody's own."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from structlog.testing import CapturingLogger

from shared.foundation import config
from shared.foundation.stages import SUMMARIZE_SKILL
from shared.jobs import claim
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.draining import drain, drop_jobs, make_due, running_without_jobs
from tests.integration.skills.conftest import URL, found_names, get, import_zip, put
from tests.skill_archives import skill_text, zip_of
from tests.standins.behaviours import Reply, Slow, Status, Truncated
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT, Behaviour
from workers.summary import summarize_skills
from workers.sweep import missing_summaries

CONTENT = "# Refunds\n\nLook the order up, then ask Ada above 200 €. Never pay in cash."
BEGINNING = "Refunds"
SUMMARY = "Refund an order, with approval by Ada above 200 €"


@pytest.fixture
async def gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str, request: Any
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model, which answers with a summary."""
    models.chat_default = answer(SUMMARY)
    changes = dict(getattr(request, "param", {}))
    settings = make_settings(llm_base_url=models.url, llm_model="m", job_backoff=0.01, **changes)
    async with running_without_jobs(settings, tenant) as served:
        yield served


def answer(summary: str) -> Reply:
    return Reply(json.dumps({"summary": summary}))


async def put_without(agent: Agent, content: str = CONTENT, name: str = "refund", **fields: Any) -> Json:
    """Store a skill without a summary."""
    body = {"content": content, **fields}
    return dict(await agent.request("PUT", f"{URL}/{name}", json=body))


async def summary_of(agent: Agent, name: str = "refund") -> tuple[str, str]:
    skill = await get(agent, name)
    return skill["summary"], skill["summary_origin"]


async def pending(agent: Agent) -> int:
    return int((await agent.request("GET", "/v1/status"))["pending"]["summary"])


async def test_a_worker_writes_the_summary_which_is_found_listed_versioned_and_paid(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    stored = await put_without(agent)
    assert (stored["summary"], stored["summary_origin"], await pending(agent)) == (BEGINNING, "content", 1)
    await drain(gateway.resources)
    assert (await summary_of(agent), await pending(agent)) == ((SUMMARY, "model"), 0)
    assert await found_names(agent, "approval by Ada") == ["refund"]
    session = await agent.session()
    assert f"- [refund]: {SUMMARY}" in str((await agent.context(session, "hello"))["blocks"])
    versions = (await agent.request("GET", f"{URL}/refund/versions"))["results"]
    assert [(version["summary"], version["content"]) for version in versions] == [
        (SUMMARY, CONTENT),
        (BEGINNING, CONTENT),
    ]
    [call] = models.chat_calls
    assert json.loads(call.body["messages"][-1]["content"]) == {"name": "refund", "content": CONTENT}
    assert call.body["response_format"]["json_schema"]["schema"]["required"] == ["summary"]
    report = await agent.request("GET", "/v1/spend", params={"group_by": "purpose"})
    assert [row["purpose"] for row in report["results"]] == ["summary"]


async def test_nobody_is_asked_for_a_summary_that_a_caller_gave(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await put(agent, "refund", content=CONTENT, summary="Mine.")
    await put_without(agent, "Another way.")
    await drain(gateway.resources)
    assert (await summary_of(agent), len(models.chat_calls)) == (("Mine.", "caller"), 0)


@pytest.mark.parametrize(
    ("body", "kept", "calls"),
    [
        ({"content": CONTENT, "summary": "Mine."}, ("Mine.", "caller"), 1),
        ({"content": "Ask Ada."}, ("Ask Ada", "model"), 2),
        (None, None, 1),
    ],
)
async def test_a_summary_of_a_version_that_is_gone_is_thrown_away(
    gateway: Gateway,
    agent: Agent,
    models: ModelServer,
    body: Json | None,
    kept: tuple[str, str] | None,
    calls: int,
) -> None:
    await put_without(agent)
    models.chat_replies.append(Slow(2, answer(SUMMARY)))
    models.chat_default = answer("Ask Ada")
    task = asyncio.create_task(summarize_skills.summarize_skills(gateway.resources))
    await asyncio.to_thread(models.wait_for_calls, 1, 10, CHAT)
    if body is None:
        await agent.request("DELETE", f"{URL}/refund")
    else:
        await agent.request("PUT", f"{URL}/refund", json=body)
    await task
    await drain(gateway.resources)
    assert len(models.chat_calls) == calls
    if kept is None:
        assert (await agent.request("GET", URL))["results"] == []
    else:
        assert await summary_of(agent) == kept
        summaries = {row["summary"] for row in (await versions_of(agent))}
        assert SUMMARY not in summaries


async def versions_of(agent: Agent, name: str = "refund") -> list[Json]:
    return list((await agent.request("GET", f"{URL}/{name}/versions"))["results"])


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (answer("Refund an order, with approval by Grace"), "Grace"),
        (answer("Refund an order, with approval above 500 €"), "500"),
        (answer("Refund an order and pay in cash"), "otherwise"),
        (answer(" ".join(["word"] * 16)), "15 words"),
        (answer("…"), "blank"),
        (Reply('{"text": "Refund an order"}'), "no JSON object"),
    ],
)
async def test_an_answer_that_invents_or_breaks_a_rule_is_repaired_once(
    gateway: Gateway, agent: Agent, models: ModelServer, first: Behaviour, reason: str
) -> None:
    models.chat_replies.append(first)
    await put_without(agent)
    await drain(gateway.resources)
    assert await summary_of(agent) == (SUMMARY, "model")
    assert len(models.chat_calls) == 2
    assert reason in models.chat_calls[-1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("behaviour", "calls"),
    [(answer("Ask Grace about 500 €"), 2), (Truncated('{"summary": "Refund an'), 1)],
)
async def test_without_a_usable_answer_the_beginning_stays_until_the_skill_changes(
    gateway: Gateway, agent: Agent, models: ModelServer, behaviour: Behaviour, calls: int
) -> None:
    models.chat_default = behaviour
    await put_without(agent)
    for _ in range(3):
        await make_due(gateway.resources)
        await drain(gateway.resources)
        await missing_summaries.enqueue_missing_summaries(gateway.resources, gateway.tenant)
    assert await summary_of(agent) == (BEGINNING, "content")
    assert await pending(agent) == 0
    assert len(models.chat_calls) <= calls
    models.chat_default = answer("Ask Ada")
    await put_without(agent, "Ask Ada.")
    await drain(gateway.resources)
    assert await summary_of(agent) == ("Ask Ada", "model")


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        ("Ask Grace about 500 €", "the skill does not say these words"),
        ("Pay in cash", "the skill says otherwise of these words"),
    ],
)
async def test_no_log_has_a_word_of_a_skill_or_of_what_a_model_made_of_it(
    gateway: Gateway,
    agent: Agent,
    models: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    summary: str,
    reason: str,
) -> None:
    log = CapturingLogger()
    monkeypatch.setattr(summarize_skills, "log", log)
    models.chat_default = answer(summary)
    await put_without(agent)
    await drain(gateway.resources)
    assert [call.kwargs["reason"] for call in log.calls] == [reason]


@pytest.mark.parametrize("gateway", [{"llm_prompt_tokens": 4000}], indirect=True)
async def test_a_skill_that_the_model_cannot_read_whole_is_not_shown_to_it(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    await put_without(agent, CONTENT + " Ask Ada." * 4000)
    await drain(gateway.resources)
    assert (await summary_of(agent), len(models.chat_calls), await pending(agent)) == (
        (BEGINNING, "content"),
        0,
        0,
    )


async def test_the_sweep_finds_what_came_without_one_and_was_never_asked_about(
    gateway: Gateway, agent: Agent
) -> None:
    await put_without(agent)
    await put(agent, "given")
    await drop_jobs(gateway.resources, gateway.tenant)
    assert await missing_summaries.enqueue_missing_summaries(gateway.resources, gateway.tenant) == 1
    await drain(gateway.resources)
    assert await summary_of(agent) == (SUMMARY, "model")
    assert await missing_summaries.enqueue_missing_summaries(gateway.resources, gateway.tenant) == 0


async def test_a_description_that_is_too_long_for_a_summary_is_summarised_with_the_content(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    description = "Refunds " + "of orders " * 20
    await import_zip(agent, zip_of({"SKILL.md": skill_text("refund", description, CONTENT)}))
    await drain(gateway.resources)
    assert await summary_of(agent) == (SUMMARY, "model")
    assert (
        json.loads(models.chat_calls[0].body["messages"][-1]["content"])["description"] == description.strip()
    )
    assert (await get(agent, "refund"))["front_matter"]["description"] == description.strip()


async def test_a_used_up_budget_delays_the_summary_until_it_is_raised(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    budget = "/v1/budgets/purpose/summary"
    await agent.request("PUT", budget, json={"period": "day", "limit_tokens": 1})
    await put_without(agent)
    await drain(gateway.resources)
    assert (len(models.chat_calls), await pending(agent)) == (0, 1)
    await agent.request("DELETE", budget, params={"period": "day"})
    await drain(gateway.resources)
    assert await summary_of(agent) == (SUMMARY, "model")


@pytest.mark.parametrize("gateway", [{"apart": True}], indirect=True)
async def test_a_refused_key_pauses_the_stage_and_no_attempt_is_used(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    models.chat_default = Status(401)
    await put_without(agent)
    for _ in range(3):
        await make_due(gateway.resources)
        await drain(gateway.resources)
    [pause] = (await agent.request("GET", "/v1/status"))["paused"]
    assert (pause["stage"], pause["reason_code"]) == ("summary", "key_refused")
    assert (await pending(agent), await summary_of(agent)) == (1, (BEGINNING, "content"))


async def test_a_job_whose_worker_died_at_every_attempt_is_given_up(gateway: Gateway, agent: Agent) -> None:
    await put_without(agent)
    async with gateway.resources.postgres.across_tenants() as tx:
        [job] = await claim.claim_batch(tx, SUMMARIZE_SKILL, 1, 60, 5)
    await summarize_skills.give_up(gateway.resources, job, "its worker ended")
    assert await pending(agent) == 0
    assert await missing_summaries.enqueue_missing_summaries(gateway.resources, gateway.tenant) == 0
