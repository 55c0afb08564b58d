"""A pass is run and applied only by the worker that has its job, and an outage never ends it."""

import asyncio
import json

import pytest
from sqlalchemy import func, select, update

from shared.foundation.stages import DREAM_PASS, DreamPass
from shared.jobs.table import job
from tests import run_pass
from tests.conftest import Gateway
from tests.draining import make_due
from tests.integration.dreams.conftest import (
    create_session,
    list_unread,
    live,
    load_run,
    merge_reply,
    run_dream,
    save_memories,
)
from tests.standins.behaviours import Hang, Reply, Status, Truncated
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour, Call
from workers.passes.pass_context import PassContext


async def start(gateway: Gateway, *passes: str) -> str:
    response = await gateway.client.post("/v1/dreams", json={"passes": list(passes)})
    return str(response.json()["id"])


async def start_with(gateway: Gateway, models: ModelServer, behaviour: Behaviour) -> str:
    """Start the consolidation of some memories by a model that behaves like this."""
    await save_memories(gateway)
    models.chat_default = behaviour
    return await start(gateway, "consolidate")


async def run_one(gateway: Gateway, run_id: str, name: DreamPass = DreamPass.CONSOLIDATE) -> str:
    return await run_pass.run_pass(gateway.resources, gateway.tenant, run_id, name)


async def take_job(gateway: Gateway) -> None:
    """Take the job of the tenant's pass as another worker would."""
    where = (job.c.tenant == gateway.tenant, job.c.stage == DREAM_PASS.name)
    claim = {"lease_token": func.gen_random_uuid(), "run_at": func.now() + func.make_interval(0, 0, 0, 0, 1)}
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(update(job).where(*where).values(claim))


async def attempts(gateway: Gateway) -> int:
    where = (job.c.tenant == gateway.tenant, job.c.stage == DREAM_PASS.name)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return int(await tx.scalar(select(job.c.attempts).where(*where)) or 0)


@pytest.mark.parametrize("is_useful", [True, False])
async def test_nothing_is_applied_if_another_worker_has_the_job_by_then(
    model_gateway: Gateway, models: ModelServer, *, is_useful: bool
) -> None:
    ids = await save_memories(model_gateway)
    before = await live(model_gateway)
    plan = str(merge_reply(ids).text) if is_useful else "I would rather not."
    loop = asyncio.get_running_loop()

    def lose_job(call: Call) -> str:
        del call
        asyncio.run_coroutine_threadsafe(take_job(model_gateway), loop).result(10)
        return plan

    models.chat_default = Reply(lose_job)
    run_id = await start(model_gateway, "consolidate")
    for _ in range(2):
        await run_one(model_gateway, run_id)

    assert await live(model_gateway) == before
    run = await load_run(model_gateway.resources, model_gateway.tenant, run_id)
    assert run.next_pass is not None
    assert len(models.chat_calls) == 1


async def test_a_pass_asks_no_more_once_another_worker_has_its_job(
    model_gateway: Gateway, models: ModelServer
) -> None:
    """The answer would be paid and thrown away."""
    ids = await save_memories(model_gateway)
    loop = asyncio.get_running_loop()
    merged = {"content": "Ada lives in Lyon.", "sourceIds": ids[:2]}

    def lose_job(call: Call) -> str:
        del call
        asyncio.run_coroutine_threadsafe(take_job(model_gateway), loop).result(10)
        return json.dumps({"toDelete": [], "toSave": [merged]})

    models.chat_default = Reply(lose_job)
    run_id = await start(model_gateway, "consolidate")

    assert await run_one(model_gateway, run_id) == "lease_lost"
    assert (len(models.chat_calls), models.judge_calls) == (1, [])


async def test_a_task_whose_pass_another_worker_runs_asks_nothing(
    model_gateway: Gateway, models: ModelServer
) -> None:
    await save_memories(model_gateway)
    run_id = await start(model_gateway, "consolidate")
    await take_job(model_gateway)

    assert await run_one(model_gateway, run_id) == "not due"
    assert models.chat_calls == []


async def test_a_task_of_a_pass_whose_turn_it_is_not_asks_nothing(
    model_gateway: Gateway, models: ModelServer
) -> None:
    await save_memories(model_gateway)
    await create_session(model_gateway, "We moved the backup to 4 am.")
    run_id = await start(model_gateway, "consolidate", "extract_episodes")

    assert await run_one(model_gateway, run_id, DreamPass.EXTRACT_EPISODES) == "other_pass_due"
    assert models.chat_calls == []
    assert await attempts(model_gateway) == 0


async def test_a_dry_run_applies_and_marks_nothing(model_gateway: Gateway, models: ModelServer) -> None:
    ids = await save_memories(model_gateway)
    await create_session(model_gateway, "We moved the backup to 4 am.")
    before = await live(model_gateway)

    def answer(call: Call) -> str:
        return str(merge_reply(ids).text) if ids[0] in call.prompt else json.dumps({"toSave": []})

    models.chat_default = Reply(answer)
    await run_dream(model_gateway, passes=["consolidate", "extract_episodes"], dry_run=True)

    assert await live(model_gateway) == before
    assert len(await list_unread(model_gateway, DreamPass.EXTRACT_EPISODES)) == 1


async def test_an_outage_ends_no_pass_and_uses_no_attempt(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = Status(503)
    run_id = await start(model_gateway, "consolidate")
    for _ in range(model_gateway.resources.settings.job_max_attempts + 1):
        assert (await run_one(model_gateway, run_id)).startswith("rescheduled")
        assert await attempts(model_gateway) == 0
        await make_due(model_gateway.resources)
    models.chat_default = merge_reply(ids)
    assert await run_one(model_gateway, run_id) == "done"


async def test_a_pass_whose_model_answers_nonsense_ends_at_its_second_try(
    model_gateway: Gateway, models: ModelServer
) -> None:
    run_id = await start_with(model_gateway, models, Reply("I would rather not."))
    assert (await run_one(model_gateway, run_id)).startswith("rescheduled")
    assert await attempts(model_gateway) == 1
    await make_due(model_gateway.resources)
    assert (await run_one(model_gateway, run_id)).startswith("failed")


async def test_a_pass_whose_answers_are_all_cut_off_ends_at_once(
    model_gateway: Gateway, models: ModelServer
) -> None:
    """Smaller parts were asked already, so a second try would cost the same and bring nothing."""
    run_id = await start_with(model_gateway, models, Truncated("{"))
    assert (await run_one(model_gateway, run_id)).startswith("failed")


async def test_a_pass_that_takes_too_long_is_tried_again(
    model_gateway: Gateway, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PassContext, "time_limit_seconds", 0.5)
    run_id = await start_with(model_gateway, models, Hang())
    async with asyncio.timeout(20):
        assert await run_one(model_gateway, run_id) == "rescheduled: it took too long"
    assert await attempts(model_gateway) == 1


async def test_each_call_extends_the_lease(model_gateway: Gateway, models: ModelServer) -> None:
    ids = await save_memories(model_gateway)
    run_id = await start(model_gateway, "consolidate")
    loop = asyncio.get_running_loop()
    where = (job.c.tenant == model_gateway.tenant, job.c.stage == DREAM_PASS.name)

    async def seconds_left() -> float:
        async with model_gateway.resources.postgres.for_tenant(model_gateway.tenant) as tx:
            statement = select(func.extract("epoch", job.c.run_at - func.now())).where(*where)
            return float(await tx.scalar(statement) or 0)

    left: list[float] = []

    def look(call: Call) -> str:
        del call
        left.append(asyncio.run_coroutine_threadsafe(seconds_left(), loop).result(10))
        return str(merge_reply(ids).text)

    models.chat_default = Reply(look)
    await run_one(model_gateway, run_id)
    lease = model_gateway.resources.settings.dream_lease
    assert len(left) == 1
    assert lease - 60 < left[0] <= lease
