"""FB2: a session is evaluated when it is idle, each for itself, and once."""

import asyncio
from typing import Any

from sqlalchemy import func, select, update

from shared.foundation.stages import DREAM_START, DreamPass, Pipeline
from shared.jobs import claim, dream_schedule
from shared.jobs.table import job
from tests import run_pass
from tests.conftest import Gateway
from tests.draining import make_due
from tests.idle_sessions import make_idle
from tests.integration.dreams.conftest import Serve, add_turns, create_session, execute_run, run_dream
from tests.integration.dreams.due_runs import due_at, runs
from tests.integration.dreams.evaluations import GOOD, evaluation_due_in
from tests.locks import wait_until_blocked
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer
from tests.standins.wire import Call
from workers.dream import due_evaluations
from workers.dream.due_runs import start_due_runs


async def summaries(gateway: Gateway) -> list[str]:
    """Return the ids of the sessions that have an evaluation, once for each."""
    payload = (await gateway.client.get("/v1/feedback", params={"type": "SessionSummary"})).json()
    return sorted(signal["session_id"] for signal in payload["results"])


async def run_due(gateway: Gateway) -> list[dict[str, Any]]:
    """Start what is due, execute it, and return the runs that were started."""
    before = {run["id"] for run in await runs(gateway)}
    await start_due_runs(gateway.resources)
    started = [run for run in await runs(gateway) if run["id"] not in before]
    for run in started:
        await execute_run(gateway.resources, gateway.tenant, run["id"])
    return started


async def test_a_session_is_evaluated_when_it_has_been_idle_for_half_an_hour(serve: Serve) -> None:
    async with serve() as gateway:
        ada = await create_session(gateway, "Where is the tram?", "Thanks.")
        remaining = await evaluation_due_in(gateway)
        assert remaining is not None
        assert 1700 < remaining <= 1800
        assert await run_due(gateway) == [], "nothing is due at once"
        await create_session(gateway, "Where is the bus?", "Thanks.")
        await make_idle(gateway, ada)
        await make_due(gateway.resources)
        await start_due_runs(gateway.resources)
        [run] = await runs(gateway)
        remaining = await evaluation_due_in(gateway)
        await execute_run(gateway.resources, gateway.tenant, run["id"])

        assert run["actor"] == "evaluation"
        assert await summaries(gateway) == [ada]
        assert remaining is not None
        assert 1600 < remaining <= 1800, "due again when the other session can be idle"


async def test_the_evaluation_of_sessions_does_not_delay_the_run_of_the_scope(serve: Serve) -> None:
    async with serve(dream_initial_delay=600) as gateway:
        await make_idle(gateway, await create_session(gateway, "Where is the tram?", "Thanks."))
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
            is_evaluation = job.c.pipeline == Pipeline.EVALUATION
            await tx.execute(update(job).where(is_evaluation).values(run_at=func.now()))
            await tx.execute(job.delete().where(~is_evaluation))
        [run] = await run_due(gateway)
        assert run["actor"] == "evaluation"
        assert await evaluation_due_in(gateway) is None
        await create_session(gateway, "And the ferry?")
        run_at = await due_at(gateway)
        assert run_at is not None
        assert await _seconds_until(gateway, run_at) <= 600, "not after the interval of four hours"


async def _seconds_until(gateway: Gateway, moment: Any) -> float:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return float(moment.timestamp()) - float(
            await tx.scalar(select(func.extract("epoch", func.now()))) or 0
        )


async def test_evaluations_that_were_made_are_kept_when_the_model_becomes_unavailable(
    serve: Serve, models: ModelServer
) -> None:
    async with serve() as gateway:
        sessions = [await create_session(gateway, f"Question {n}?", "Thanks.") for n in range(4)]
        await make_idle(gateway, *sessions)
        models.chat_replies.extend([Reply(GOOD), Reply(GOOD), Status(500), Status(500), Status(500)])

        await run_dream(gateway, passes=["evaluate_sessions"])
        kept = await summaries(gateway)
        remaining = await evaluation_due_in(gateway)
        call_count = len(models.chat_calls)
        models.chat_replies.clear()
        await run_dream(gateway, passes=["evaluate_sessions"])

        assert len(kept) == 2
        assert remaining is not None
        assert remaining <= 0, "the rest is due"
        assert await summaries(gateway) == sorted(sessions)
        assert len(models.chat_calls) == call_count + 2, "no session is paid for twice"


async def test_a_slow_model_evaluates_what_it_has_time_for_and_the_rest_is_due(
    serve: Serve, models: ModelServer
) -> None:
    async with serve(llm_timeout=100, dream_lease=200) as gateway:
        sessions = [await create_session(gateway, f"Question {n}?", "Thanks.") for n in range(3)]
        await make_idle(gateway, *sessions)
        for count in (1, 2, 3):
            await run_dream(gateway, passes=["evaluate_sessions"])
            assert len(await summaries(gateway)) == len(models.chat_calls) == count


async def test_a_turn_that_arrives_during_an_evaluation_is_evaluated_later(
    serve: Serve, models: ModelServer
) -> None:
    async with serve() as gateway:
        session = await create_session(gateway, "Where is the tram?", "Thanks.")
        await make_idle(gateway, session)
        loop = asyncio.get_running_loop()

        def speak_meanwhile(call: Call) -> str:
            del call
            arrived = add_turns(gateway, session, "That was the wrong tram.")
            asyncio.run_coroutine_threadsafe(arrived, loop).result(10)
            return GOOD

        models.chat_replies.append(Reply(speak_meanwhile))
        await run_dream(gateway, passes=["evaluate_sessions"])
        await make_idle(gateway, session)
        second = await run_dream(gateway, passes=["evaluate_sessions"])
        third = await run_dream(gateway, passes=["evaluate_sessions"])

        assert second["passes"][0]["state"] == "done"
        assert "That was the wrong tram." in models.chat_calls[1].prompt
        assert third["passes"][0]["state"] == "skipped"
        assert await summaries(gateway) == [session, session]


async def test_a_worker_that_looks_for_idle_sessions_waits_for_turns_and_turns_wait_for_none(
    serve: Serve,
) -> None:
    async with serve() as gateway:
        session = await create_session(gateway, "Where is the tram?", "Thanks.")
        await make_due(gateway.resources)
        async with gateway.resources.postgres.across_tenants() as tx:
            jobs = await claim.claim_batch(tx, DREAM_START, 10, 60, 5)
        [claimed] = [claimed for claimed in jobs if claimed.pipeline is Pipeline.EVALUATION]
        scope = dream_schedule.scope_from_record_id(gateway.tenant, claimed.record_id)
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
            await dream_schedule.schedule_evaluation(tx, gateway.resources.settings, scope)
            async with asyncio.timeout(5):
                await add_turns(gateway, session, "That was the wrong tram.")
            looking = asyncio.create_task(due_evaluations.start_or_reschedule(gateway.resources, claimed))
            await wait_until_blocked(tx, looking)
        await looking
        assert await evaluation_due_in(gateway) is not None


async def test_sessions_that_no_model_can_evaluate_are_set_aside_and_do_not_keep_the_others_waiting(
    serve: Serve, models: ModelServer
) -> None:
    async with serve() as gateway:
        poisoned = [await create_session(gateway, f"POISON {n}", "Thanks.") for n in range(4)]
        await make_idle(gateway, *poisoned)
        healthy = await create_session(gateway, "Where is the tram?", "Thanks.")
        await make_idle(gateway, healthy)
        models.chat_default = Reply(lambda call: "Never." if "POISON" in call.prompt else GOOD)

        for _ in range(4):
            await run_dream(gateway, passes=["evaluate_sessions"])
        call_count = len(models.chat_calls)
        last = await run_dream(gateway, passes=["evaluate_sessions"])

        assert await summaries(gateway) == [healthy]
        assert last["passes"][0]["state"] == "skipped"
        assert len(models.chat_calls) == call_count
        assert sum("POISON 0" in call.prompt for call in models.chat_calls) == 2


async def test_an_evaluation_is_dropped_if_another_worker_has_the_job_by_then(
    serve: Serve, models: ModelServer
) -> None:
    async with serve() as gateway:
        session = await create_session(gateway, "Where is the tram?", "Thanks.")
        await make_idle(gateway, session)
        loop = asyncio.get_running_loop()

        async def take_job() -> None:
            is_pass = (job.c.tenant == gateway.tenant, job.c.stage == "dream_pass")
            async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
                token = func.gen_random_uuid()
                await tx.execute(update(job).where(*is_pass).values(lease_token=token))

        def lose_lease(call: Call) -> str:
            del call
            asyncio.run_coroutine_threadsafe(take_job(), loop).result(10)
            return GOOD

        models.chat_default = Reply(lose_lease)
        body = {"passes": ["evaluate_sessions"]}
        run_id = (await gateway.client.post("/v1/dreams", json=body)).json()["id"]
        result = await run_pass.run_pass(
            gateway.resources, gateway.tenant, run_id, DreamPass.EVALUATE_SESSIONS
        )

        assert result == "lease_lost"
        assert await summaries(gateway) == []
