"""MM2 with a language model: it judges salience in a worker, and nothing that it does loses a report."""

import asyncio
import base64
import json
import pickle
import signal
import sys
from collections.abc import Callable
from http import HTTPStatus

import pytest
from sqlalchemy import func, update

from shared.foundation.stages import PROMOTE
from shared.jobs.table import job as job_table
from shared.platform.spend.charge import Purpose
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.draining import drain, make_due
from tests.integration.scratchpad.conftest import (
    last_promotion,
    note,
    outcomes,
    promoted_memories,
    report,
    snippets,
)
from tests.standins.behaviours import Reply, Status, Truncated
from tests.standins.models import ModelServer
from tests.standins.wire import Call
from workers.sweep import jobs as sweep_jobs

FACT = "Ada wants one invoice a month."


def judging(salience: float, reason: str = "it lasts") -> Callable[[Call], str]:
    """Return a reply that gives every snippet of the prompt the same salience."""

    def reply(call: Call) -> str:
        lines = call.body["messages"][1]["content"].splitlines()
        ids = [json.loads(line)["id"] for line in lines]
        return json.dumps({"snippets": [{"id": id_, "salience": salience, "reason": reason} for id_ in ids]})

    return reply


@pytest.fixture
def agent(judged: Gateway) -> Agent:
    """Return an agent of the gateway with a language model."""
    return Agent(judged.client, judged.tenant)


async def noted_session(agent: Agent, *contents: str) -> tuple[str, list[Json]]:
    session = await agent.session(user_id="ada")
    return session, [await note(agent, session, content) for content in contents or (FACT,)]


async def test_salient_and_surprising_is_promoted_and_the_rest_is_not(
    agent: Agent, judged: Gateway, models: ModelServer
) -> None:
    await agent.save("Ada keeps the red key at the desk.", user_id="ada", enrich=False)
    known = "The red key: Ada keeps it at the desk."
    session, [new, old] = await noted_session(agent, FACT, known)
    models.chat_default = Reply(judging(0.9))
    saved = await report(agent, session)
    assert (await last_promotion(agent, session))["state"] == "pending"
    assert (await agent.request("GET", "/v1/status"))["pending"]["promotion"] == 1
    await drain(judged.resources)
    promotion = await last_promotion(agent, session)
    assert (promotion["id"], promotion["state"]) == (saved["promotion_id"], "done")
    assert outcomes(promotion) == {new["id"]: "promoted", old["id"]: "not_promoted"}
    scores = promotion["results"][1]["scores"]
    assert scores["salience"] == {"value": 0.9, "met": True, "reason": "it lasts"}
    assert (scores["surprisal"]["met"], scores["surprisal"]["value"]) == (False, 0.0)
    assert len(models.chat_calls) == 1
    [call] = models.chat_calls
    assert call.body["response_format"]["type"] == "json_schema"
    spend = await agent.request("GET", "/v1/spend", params={"group_by": "purpose,user"})
    assert [(row["purpose"], row["user_id"]) for row in spend["results"]] == [(Purpose.PROMOTION, "ada")]


async def test_what_is_not_salient_stays(agent: Agent, judged: Gateway, models: ModelServer) -> None:
    session, [snippet] = await noted_session(agent)
    models.chat_default = Reply(judging(0.69))
    await report(agent, session)
    await drain(judged.resources)
    assert outcomes(await last_promotion(agent, session)) == {snippet["id"]: "not_promoted"}
    assert await promoted_memories(agent, "ada") == []


@pytest.mark.parametrize("reply", ["Sure!", '{"snippets": []}'])
async def test_a_useless_answer_leaves_the_other_criteria(
    agent: Agent, judged: Gateway, models: ModelServer, reply: str
) -> None:
    session, [rare] = await noted_session(agent)
    frequent = await note(agent, session, "Answer in German.", times=3)
    models.chat_default = Reply(reply)
    await report(agent, session)
    await drain(judged.resources)
    promotion = await last_promotion(agent, session)
    assert outcomes(promotion) == {rare["id"]: "not_promoted", frequent["id"]: "promoted"}
    assert "not judged" in promotion["results"][0]["scores"]["salience"]["reason"]
    assert len(models.chat_calls) == 2


async def test_an_answer_that_is_cut_off_is_asked_for_in_halves(
    agent: Agent, judged: Gateway, models: ModelServer
) -> None:
    session, noted = await noted_session(agent, FACT, "Answer in German.", "Trains run hourly.")
    models.chat_replies.append(Truncated('{"snippets": [{"id": "'))
    models.chat_default = Reply(judging(1))
    await report(agent, session)
    await drain(judged.resources)
    assert outcomes(await last_promotion(agent, session)) == {s["id"]: "promoted" for s in noted}
    assert len(models.chat_calls) == 3


async def test_a_model_that_is_away_delays_and_ends_nothing(
    agent: Agent, judged: Gateway, models: ModelServer
) -> None:
    session, [snippet] = await noted_session(agent)
    models.chat_default = Status(503)
    await report(agent, session)
    for _ in range(judged.resources.settings.job_max_attempts + 1):
        await drain(judged.resources)
        await make_due(judged.resources)
    assert (await last_promotion(agent, session))["state"] == "pending"
    models.chat_default = Reply(judging(1))
    await drain(judged.resources)
    assert outcomes(await last_promotion(agent, session)) == {snippet["id"]: "promoted"}


async def test_a_refused_key_pauses_promotions_and_the_first_answer_ends_the_pause(
    agent: Agent, judged: Gateway, models: ModelServer
) -> None:
    session, _ = await noted_session(agent)
    models.chat_default = Status(401)
    await report(agent, session)
    await drain(judged.resources)
    calls = len(models.chat_calls)
    await drain(judged.resources)
    assert len(models.chat_calls) == calls == 1
    paused = (await agent.request("GET", "/v1/status"))["paused"]
    # A pause is the installation's, so those of other tests may stand beside it.
    of_promotions = [pause["reason_code"] for pause in paused if pause["stage"] == "promotion"]
    assert of_promotions == ["key_refused"]


async def test_a_budget_that_is_used_up_leaves_the_other_criteria(
    agent: Agent, judged: Gateway, models: ModelServer
) -> None:
    limit = {"period": "day", "limit_tokens": 1}
    await agent.request("PUT", "/v1/budgets/purpose/promotion", json=limit)
    session, [rare] = await noted_session(agent)
    await note(agent, session, "Answer in German.", times=3)
    await report(agent, session)
    await drain(judged.resources)
    promotion = await last_promotion(agent, session)
    assert sorted(outcomes(promotion).values()) == ["not_promoted", "promoted"]
    assert "budget" in promotion["results"][0]["scores"]["salience"]["reason"]
    assert models.chat_calls == []
    assert rare["id"] == promotion["results"][0]["id"]


async def test_a_worker_killed_between_the_answer_and_the_record_changes_nothing(
    agent: Agent, judged: Gateway, models: ModelServer
) -> None:
    session, [snippet] = await noted_session(agent)
    models.chat_default = Reply(judging(1))
    await report(agent, session)
    settings = base64.b64encode(pickle.dumps(judged.resources.settings)).decode()
    module = "tests.integration.scratchpad.killed_promotion"
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, settings)
    assert await process.wait() == -signal.SIGKILL
    assert len(models.chat_calls) == 1
    assert (await last_promotion(agent, session))["state"] == "pending"
    assert await promoted_memories(agent, "ada") == []
    await make_due(judged.resources)
    await drain(judged.resources)
    assert outcomes(await last_promotion(agent, session)) == {snippet["id"]: "promoted"}
    assert [memory["reinforcement_count"] for memory in await promoted_memories(agent, "ada")] == [1]
    assert len(models.chat_calls) == 2


async def test_a_claim_that_was_lost_meanwhile_records_nothing(
    agent: Agent, judged: Gateway, models: ModelServer
) -> None:
    session, _ = await noted_session(agent)
    loop = asyncio.get_running_loop()

    async def take_job() -> None:
        where = (job_table.c.tenant == judged.tenant, job_table.c.stage == PROMOTE.name)
        taken = {
            "lease_token": func.gen_random_uuid(),
            "run_at": func.now() + func.make_interval(0, 0, 0, 0, 1),
        }
        async with judged.resources.postgres.for_tenant(judged.tenant) as tx:
            await tx.execute(update(job_table).where(*where).values(taken))

    def reply(call: Call) -> str:
        asyncio.run_coroutine_threadsafe(take_job(), loop).result(10)
        return judging(1)(call)

    models.chat_default = Reply(reply)
    await report(agent, session)
    await drain(judged.resources)
    assert (await last_promotion(agent, session))["state"] == "pending"
    assert await promoted_memories(agent, "ada") == []


async def test_a_session_deleted_while_the_model_thinks_leaves_nothing(
    agent: Agent, judged: Gateway, models: ModelServer
) -> None:
    session, _ = await noted_session(agent)
    loop = asyncio.get_running_loop()

    def reply(call: Call) -> str:
        deletion = agent.request("DELETE", f"/v1/sessions/{session}")
        asyncio.run_coroutine_threadsafe(deletion, loop).result(10)
        return judging(1)(call)

    models.chat_default = Reply(reply)
    await report(agent, session)
    await drain(judged.resources)
    assert await promoted_memories(agent, "ada") == []
    await agent.request("GET", f"/v1/sessions/{session}", status=HTTPStatus.NOT_FOUND)
    assert not any((await agent.request("GET", "/v1/status"))["pending"].values())


async def test_a_promotion_whose_workers_died_is_finished_by_the_other_criteria(
    agent: Agent, judged: Gateway, models: ModelServer
) -> None:
    session, [rare] = await noted_session(agent)
    frequent = await note(agent, session, "Answer in German.", times=3)
    await report(agent, session)
    attempts = judged.resources.settings.job_max_attempts
    where = (job_table.c.tenant == judged.tenant, job_table.c.stage == PROMOTE.name)
    async with judged.resources.postgres.for_tenant(judged.tenant) as tx:
        lost = {"attempts": attempts, "lease_token": func.gen_random_uuid(), "run_at": func.now()}
        await tx.execute(update(job_table).where(*where).values(lost))
    await sweep_jobs.fail_exhausted_jobs(judged.resources)
    promotion = await last_promotion(agent, session)
    assert outcomes(promotion) == {rare["id"]: "not_promoted", frequent["id"]: "promoted"}
    assert f"its worker ended {attempts} times" in promotion["results"][0]["scores"]["salience"]["reason"]
    assert models.chat_calls == []
    assert len([s for s in await snippets(agent, session) if s["promoted_at"]]) == 1
