"""TR5: a judge that becomes trusted is asked about what waits, once, and settles what it is sure of."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config
from shared.foundation.stages import JUDGE_PROPOSALS_TASK
from shared.verification.claim import Verdict
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.draining import running_without_jobs
from tests.integration.proposals.conftest import decide, fact, hold_one, listed, say
from tests.standins.asked_claims import AskedClaim, asked_claims, reply_text
from tests.standins.behaviours import Hang, Reply, Status
from tests.standins.models import ModelServer
from tests.trusted_judges import trust_judge
from workers.enrichment.proposal_judging import judge_waiting
from workers.sweep.waiting_proposals import wake_if_due


@pytest.fixture
async def gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a judge that nobody has measured yet."""
    # Apart: what other tests hold would be asked about, too.
    settings = make_settings(apart=True, llm_base_url=models.url, llm_model="m", job_backoff=0.01)
    async with running_without_jobs(settings, tenant, has_trusted_judge=False) as served:
        yield served


def says(verdict: Verdict, of_closing: Verdict = Verdict.SUPPORTED) -> Reply:
    """Return a behaviour: one verdict on statements, another on what they would end."""

    def verdict_of(claim: AskedClaim) -> Verdict:
        return verdict if claim.closes is None else of_closing

    return Reply(lambda call: reply_text(call, verdict_of))


async def test_what_waits_is_stored_once_a_judge_is_trusted(
    gateway: Gateway, agent: Agent, scope: Json, models: ModelServer
) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    assert not await wake_if_due(gateway.resources)
    assert await judge_waiting(gateway.resources) == 0
    assert not models.judge_calls, "no judge is trusted"
    await trust_judge(gateway.resources, "m")
    assert await wake_if_due(gateway.resources)
    assert await judge_waiting(gateway.resources) == 1
    proposal = await agent.request("GET", f"/v1/proposals/{proposal_id}")
    assert (proposal["state"], proposal["decided_by"]) == ("approved", "judge")
    memory = await agent.request("GET", f"/v1/memories/{proposal['memory_id']}")
    assert (memory["content"], memory["decided_by"]) == ("Ada lives in Rome.", "judge")
    [claim] = asked_claims(models.judge_calls[0])
    assert claim.evidence == ("I moved to Rome.",)


async def test_what_the_judge_does_not_find_is_refused(
    gateway: Gateway, agent: Agent, scope: Json, models: ModelServer
) -> None:
    models.judge_default = says(Verdict.NOT_SAID)
    await hold_one(gateway, scope, fact(await say(agent, scope)))
    await trust_judge(gateway.resources, "m")
    assert await judge_waiting(gateway.resources) == 1
    [proposal] = await listed(agent, scope)
    assert (proposal["state"], proposal["memory_id"]) == ("refused", None)


async def test_a_closing_that_it_does_not_find_leaves_the_earlier_memory_open(
    gateway: Gateway, agent: Agent, scope: Json, models: ModelServer
) -> None:
    models.judge_default = says(Verdict.SUPPORTED, of_closing=Verdict.NOT_SAID)
    earlier = (await agent.save("Ada lives in Graz.", enrich=False, **scope))["id"]
    await hold_one(gateway, scope, fact(await say(agent, scope), closes=earlier))
    await trust_judge(gateway.resources, "m")
    assert await judge_waiting(gateway.resources) == 1
    [proposal] = await listed(agent, scope)
    assert proposal["state"] == "approved"
    assert (await agent.request("GET", f"/v1/memories/{earlier}"))["valid_until"] is None


async def test_a_statement_is_stored_alone_if_what_it_would_end_is_gone(
    gateway: Gateway, agent: Agent, scope: Json, models: ModelServer
) -> None:
    earlier = (await agent.save("Ada lives in Graz.", enrich=False, **scope))["id"]
    await hold_one(gateway, scope, fact(await say(agent, scope), closes=earlier))
    await agent.request("POST", f"/v1/memories/{earlier}/archive")
    await trust_judge(gateway.resources, "m")
    assert await judge_waiting(gateway.resources) == 1
    [proposal] = await listed(agent, scope)
    assert proposal["state"] == "approved"


async def test_without_a_clear_verdict_it_waits_and_this_judge_is_asked_once(
    gateway: Gateway, agent: Agent, scope: Json, models: ModelServer
) -> None:
    models.judge_default = Reply("I support it.")
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    await trust_judge(gateway.resources, "m")
    assert await judge_waiting(gateway.resources) == 0
    assert not await wake_if_due(gateway.resources)
    assert await judge_waiting(gateway.resources) == 0
    assert len(models.judge_calls) == 1
    assert (await decide(agent, proposal_id))["state"] == "approved", "a caller may still decide"


async def test_a_judge_that_is_away_is_asked_again(
    gateway: Gateway, agent: Agent, scope: Json, models: ModelServer
) -> None:
    await hold_one(gateway, scope, fact(await say(agent, scope)))
    await trust_judge(gateway.resources, "m")
    agreeing, models.judge_default = models.judge_default, Status(503)
    assert await judge_waiting(gateway.resources) == 0
    models.judge_default = agreeing
    assert await wake_if_due(gateway.resources)


async def test_what_a_caller_decides_while_the_judge_thinks_stands(
    gateway: Gateway, agent: Agent, scope: Json, models: ModelServer
) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    await trust_judge(gateway.resources, "m")
    hang = Hang()
    agreeing, models.judge_default = models.judge_default, hang
    judging = asyncio.create_task(judge_waiting(gateway.resources))
    await asyncio.to_thread(models.wait_for_calls, 1)
    await decide(agent, proposal_id, "refuse")
    models.judge_default = agreeing
    models.release()
    await judging
    [proposal] = await listed(agent, scope)
    assert proposal["state"] == "refused"
    memories = await agent.request("GET", "/v1/memories", params=scope)
    assert memories["results"] == []


async def test_more_than_one_call_asks_about_are_asked_by_further_tasks(
    gateway: Gateway, agent: Agent, scope: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await say(agent, scope)
    for number in range(12):
        await hold_one(gateway, scope, fact(turn, f"Ada has house {number}."))
    await trust_judge(gateway.resources, "m")
    sent: list[str] = []
    monkeypatch.setattr(gateway.resources.publisher, "send", lambda task, *_: sent.append(task))
    assert await judge_waiting(gateway.resources) == 10
    assert JUDGE_PROPOSALS_TASK in sent
    assert await judge_waiting(gateway.resources) == 2
