"""DR1: a pass has the time that its own lease gives it, and gives back what it can't finish."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from shared.foundation import config
from shared.foundation.stages import DREAM_PASS, DreamPass
from shared.jobs.table import job
from tests.conftest import Gateway, serving
from tests.integration.dreams.conftest import proposing, run_of, saved
from tests.journey.agent import until
from tests.standins.behaviours import Hang, Slow
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT
from workers.dream import run_pass

LEASE = 1.0


@pytest.fixture
def settings(make_settings: Callable[..., config.Settings], models: ModelServer) -> config.Settings:
    return make_settings(llm_base_url=models.url, llm_model="m", job_lease=LEASE, dream_lease=60)


@pytest.fixture
async def house(settings: config.Settings, tenant: str) -> AsyncIterator[Gateway]:
    async with serving(settings, tenant) as served:
        yield served


@pytest.fixture
async def process(settings: config.Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """What a worker process keeps, in a thread of the test's."""
    assert settings.redis_url is not None
    monkeypatch.setenv("LOCI_REDIS_URL", settings.redis_url.get_secret_value())
    from workers import app

    one = app._Process()
    one.settings = settings
    one.start()
    monkeypatch.setattr(app, "_process", one)
    yield one
    one.stop()

    async def stopped() -> bool:
        return not one.loop.is_running()

    await until(stopped)
    one.loop.close()


async def begun(house: Gateway) -> str:
    answer = await house.client.post("/v1/dreams", json={"passes": ["consolidate"]})
    return str(answer.json()["id"])


async def claim_of(house: Gateway) -> tuple[Any, int, bool]:
    """Return the token and the attempts of the run's work row, and whether it is due."""
    mine = (job.c.tenant == house.tenant, job.c.stage == DREAM_PASS.name)
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        statement = select(job.c.lease_token, job.c.attempts, job.c.run_at <= func.now()).where(*mine)
        row = (await connection.execute(statement)).one()
    return row[0], row[1], row[2]


async def test_a_model_that_thinks_longer_than_a_workers_lease_is_waited_for(
    house: Gateway, models: ModelServer, process: Any
) -> None:
    """The task's deadline follows the lease of the pass, not the one of the other queues."""
    from workers.dream import tasks

    models.chat_default = Slow(LEASE * 2, proposing(await saved(house)))
    run_id = await begun(house)

    told = await asyncio.to_thread(
        tasks.consolidate, tenant=house.tenant, agent="default", user=None, run=run_id
    )

    assert told == "done"
    assert (await run_of(house.resources, house.tenant, run_id)).passes[0].applied["created"] == 1


async def test_a_pass_that_is_cancelled_gives_its_claim_back_at_once(
    house: Gateway, models: ModelServer
) -> None:
    await saved(house)
    models.chat_default = Hang()
    run_id = await begun(house)
    at_work = asyncio.create_task(
        run_pass.run_pass(house.resources, house.tenant, run_id, DreamPass.CONSOLIDATE)
    )
    await asyncio.to_thread(models.wait_for_calls, 1, 10, CHAT)
    token, attempts, due = await claim_of(house)
    assert (token is not None, attempts, due) == (True, 1, False)

    at_work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await at_work

    assert await claim_of(house) == (None, 0, True)


async def test_a_worker_that_is_told_to_stop_leaves_the_run_due_for_another(
    house: Gateway, models: ModelServer, process: Any
) -> None:
    from workers.dream import tasks

    ids = await saved(house)
    models.chat_default = Hang()
    run_id = await begun(house)
    ended: list[BaseException] = []

    def work_on() -> None:
        try:
            tasks.consolidate(tenant=house.tenant, agent="default", user=None, run=run_id)
        except BaseException as error:  # noqa: BLE001  (Celery's Ignore, which is looked at below)
            ended.append(error)

    thread = threading.Thread(target=work_on)
    thread.start()
    await asyncio.to_thread(models.wait_for_calls, 1, 10, CHAT)
    process.loop.call_soon_threadsafe(process._cancel)
    await asyncio.to_thread(thread.join, 10)

    assert [type(one).__name__ for one in ended] == ["Ignore"]
    assert await claim_of(house) == (None, 0, True)
    models.chat_default = proposing(ids)
    assert await run_pass.run_pass(house.resources, house.tenant, run_id, DreamPass.CONSOLIDATE) == "done"
