"""DR1: a pass may take as long as its own lease allows, and releases its job if it is stopped."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from shared.foundation import config
from shared.foundation.stages import DREAM_PASS, DreamPass
from shared.jobs.table import job
from tests import run_pass
from tests.agent import wait_until
from tests.conftest import Gateway, running_gateway
from tests.integration.dreams.conftest import load_run, merge_reply, save_memories
from tests.standins.behaviours import Hang, Slow
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT

LEASE = 1.0


@pytest.fixture
def settings(make_settings: Callable[..., config.Settings], models: ModelServer) -> config.Settings:
    return make_settings(llm_base_url=models.url, llm_model="m", job_lease=LEASE, dream_lease=60)


@pytest.fixture
async def model_gateway(settings: config.Settings, tenant: str) -> AsyncIterator[Gateway]:
    async with running_gateway(settings, tenant) as served:
        yield served


@pytest.fixture
async def process(settings: config.Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Start the event loop of a worker process, in a thread of the test."""
    assert settings.redis_url is not None
    monkeypatch.setenv("LOCI_REDIS_URL", settings.redis_url.get_secret_value())
    from workers import app

    process = app._Process()
    process.settings = settings
    process.start()
    monkeypatch.setattr(app, "_process", process)
    yield process
    process.stop()

    async def stopped() -> bool:
        return not process.loop.is_running()

    await wait_until(stopped)
    process.loop.close()


async def start_run(model_gateway: Gateway) -> str:
    response = await model_gateway.client.post("/v1/dreams", json={"passes": ["consolidate"]})
    return str(response.json()["id"])


async def job_state(model_gateway: Gateway) -> tuple[Any, int, bool]:
    """Return the lease token and the attempts of the run's job, and whether it is due."""
    where = (job.c.tenant == model_gateway.tenant, job.c.stage == DREAM_PASS.name)
    async with model_gateway.resources.postgres.for_tenant(model_gateway.tenant) as tx:
        statement = select(job.c.lease_token, job.c.attempts, job.c.run_at <= func.now()).where(*where)
        row = (await tx.execute(statement)).one()
    return row[0], row[1], row[2]


async def test_a_pass_waits_for_a_model_longer_than_the_lease_of_other_queues(
    model_gateway: Gateway, models: ModelServer, process: Any
) -> None:
    """The time limit of the task is the lease of the pass, not that of the other queues."""
    from workers.dream import tasks

    models.chat_default = Slow(LEASE * 2, merge_reply(await save_memories(model_gateway)))
    run_id = await start_run(model_gateway)

    result = await asyncio.to_thread(
        tasks.consolidate, tenant=model_gateway.tenant, agent="default", user=None, run=run_id
    )

    assert result == "done"
    assert (await load_run(model_gateway.resources, model_gateway.tenant, run_id)).passes[0].applied[
        "created"
    ] == 1


async def test_a_cancelled_pass_releases_its_job_at_once(model_gateway: Gateway, models: ModelServer) -> None:
    await save_memories(model_gateway)
    models.chat_default = Hang()
    run_id = await start_run(model_gateway)
    pass_task = asyncio.create_task(
        run_pass.run_pass(model_gateway.resources, model_gateway.tenant, run_id, DreamPass.CONSOLIDATE)
    )
    await asyncio.to_thread(models.wait_for_calls, 1, 10, CHAT)
    token, attempts, due = await job_state(model_gateway)
    assert (token is not None, attempts, due) == (True, 1, False)

    pass_task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pass_task

    assert await job_state(model_gateway) == (None, 0, True)


async def test_a_worker_that_is_stopped_leaves_the_run_due_for_another(
    model_gateway: Gateway, models: ModelServer, process: Any
) -> None:
    from workers.dream import tasks

    ids = await save_memories(model_gateway)
    models.chat_default = Hang()
    run_id = await start_run(model_gateway)
    raised: list[BaseException] = []

    def run_task() -> None:
        try:
            tasks.consolidate(tenant=model_gateway.tenant, agent="default", user=None, run=run_id)
        except BaseException as error:  # noqa: BLE001  (Celery's Ignore, which is asserted below)
            raised.append(error)

    thread = threading.Thread(target=run_task)
    thread.start()
    await asyncio.to_thread(models.wait_for_calls, 1, 10, CHAT)
    process.loop.call_soon_threadsafe(process._cancel)
    await asyncio.to_thread(thread.join, 10)

    assert [type(error).__name__ for error in raised] == ["Ignore"]
    assert await job_state(model_gateway) == (None, 0, True)
    models.chat_default = merge_reply(ids)
    assert (
        await run_pass.run_pass(model_gateway.resources, model_gateway.tenant, run_id, DreamPass.CONSOLIDATE)
        == "done"
    )
