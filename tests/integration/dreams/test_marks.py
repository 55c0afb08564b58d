"""CV2: what counts as read is what a pass was given, also when it gives up and when its worker dies."""

import asyncio
import json
from typing import Any

from sqlalchemy import update

from shared.foundation.stages import DREAM_PASS, DreamPass
from shared.jobs.table import job
from tests import run_pass
from tests.conftest import Gateway, running_gateway
from tests.draining import make_due
from tests.integration.dreams.conftest import add_turns, create_session, execute_run, list_unread, run_dream
from tests.integration.dreams.due_runs import due_at, runs
from tests.standins.behaviours import Hang, Reply
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT, Call
from workers.dream.due_runs import start_due_runs
from workers.sweep.jobs import fail_exhausted_jobs

NOTHING = Reply(json.dumps({"occurrences": [], "toSave": [], "toUpdate": [], "entities": [], "triples": []}))


async def test_a_pass_that_gives_up_leaves_a_turn_unread_that_arrived_during_its_last_try(
    model_gateway: Gateway, models: ModelServer
) -> None:
    session = await create_session(model_gateway, "I like short answers.")
    loop = asyncio.get_running_loop()

    def talk_nonsense(call: Call) -> str:
        del call
        arrived = add_turns(model_gateway, session, f"during try {len(models.chat_calls)}")
        asyncio.run_coroutine_threadsafe(arrived, loop).result(10)
        return "I would rather not."

    models.chat_default = Reply(talk_nonsense)

    run = await run_dream(model_gateway, passes=["infer_preferences"])

    assert run["passes"][0]["state"] == "failed"
    assert [("during try 1" in call.prompt) for call in models.chat_calls] == [False, True]
    assert await list_unread(model_gateway, DreamPass.INFER_PREFERENCES) == ["during try 2"]


async def test_a_pass_whose_workers_died_leaves_a_turn_unread_that_it_was_not_given(
    model_gateway: Gateway, models: ModelServer
) -> None:
    session = await create_session(model_gateway, "I like short answers.")
    models.chat_default = Hang()
    body = {"passes": ["extract_episodes"]}
    run_id = (await model_gateway.client.post("/v1/dreams", json=body)).json()["id"]
    resources, tenant = model_gateway.resources, model_gateway.tenant
    pass_task = asyncio.create_task(run_pass.run_pass(resources, tenant, run_id, DreamPass.EXTRACT_EPISODES))
    await asyncio.to_thread(models.wait_for_calls, 1, 10, CHAT)
    await add_turns(model_gateway, session, "And long ones on Sundays.")

    async with resources.postgres.for_tenant(tenant) as tx:
        attempts = resources.settings.job_max_attempts
        where = (job.c.tenant == tenant, job.c.stage == DREAM_PASS.name)
        await tx.execute(update(job).where(*where).values(attempts=attempts))
    await make_due(resources)
    await fail_exhausted_jobs(resources)
    pass_task.cancel()
    await asyncio.gather(pass_task, return_exceptions=True)

    run = (await model_gateway.client.get(f"/v1/dreams/{run_id}")).json()
    assert run["passes"][0]["state"] == "failed"
    assert await list_unread(model_gateway, DreamPass.EXTRACT_EPISODES) == ["And long ones on Sundays."]


async def test_a_correction_that_arrives_while_corrections_are_mined_is_mined_by_the_next_run(
    model_gateway: Gateway, models: ModelServer
) -> None:
    session = await create_session(model_gateway, "No, that's wrong: the backup runs at 2 am.")
    loop = asyncio.get_running_loop()

    def correct_meanwhile(call: Call) -> str:
        del call
        arrived = add_turns(model_gateway, session, "No, that's wrong: the port is 5433.")
        asyncio.run_coroutine_threadsafe(arrived, loop).result(10)
        return json.dumps({"toSave": []})

    models.chat_default = Reply(correct_meanwhile)
    first = await run_dream(model_gateway, passes=["mine_anti_patterns"])
    models.chat_default = NOTHING
    second = await run_dream(model_gateway, passes=["mine_anti_patterns"])
    third = await run_dream(model_gateway, passes=["mine_anti_patterns"])

    states = [run["passes"][0]["state"] for run in (first, second, third)]
    assert states == ["done", "done", "skipped"]
    assert '"No, that\'s wrong: the port is 5433."' in models.chat_calls[1].prompt
    assert '"No, that\'s wrong: the backup runs at 2 am."' not in models.chat_calls[1].prompt


async def test_every_correction_is_mined_once_however_many_newer_signals_there_are(
    make_settings: Any, models: ModelServer, tenant: str
) -> None:
    settings = make_settings(llm_base_url=models.url, llm_model="m", dream_max_signals=2)
    models.chat_default = NOTHING
    async with running_gateway(settings, tenant) as model_gateway:
        wrong = [f"No, that's wrong: the port is {number}." for number in range(5)]
        await create_session(model_gateway, *wrong)
        for _ in range(3):
            await run_dream(model_gateway, passes=["mine_anti_patterns"])
        last = await run_dream(model_gateway, passes=["mine_anti_patterns"])

    assert last["passes"][0]["state"] == "skipped"
    corrections = [call.prompt.partition("Known already")[0] for call in models.chat_calls]
    assert [sum(text in prompt for prompt in corrections) for text in wrong] == [1] * 5


async def test_turns_over_the_limit_of_a_pass_stay_unread_and_the_scope_is_due_again(
    make_settings: Any, database: dict[str, str], models: ModelServer, tenant: str
) -> None:
    models.chat_default = NOTHING
    disabled = ["deduplicate", "evaluate_sessions", "consolidate", "mine_anti_patterns"]
    settings = make_settings(
        **database,
        llm_base_url=models.url,
        llm_model="m",
        dream_max_turns=2,
        dream_quiet_period=0,
        dream_disabled_passes=disabled,
    )
    async with running_gateway(settings, tenant) as model_gateway:
        await create_session(model_gateway, *(f"turn {number}" for number in range(5)))
        for unread_count in (3, 1, 0):
            await make_due(model_gateway.resources)
            await start_due_runs(model_gateway.resources)
            [newest, *_] = await runs(model_gateway)
            await execute_run(model_gateway.resources, tenant, newest["id"])
            assert len(await list_unread(model_gateway, DreamPass.EXTRACT_EPISODES)) == unread_count
            assert (await due_at(model_gateway) is None) == (unread_count == 0)
