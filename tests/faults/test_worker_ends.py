"""Workers end: a job that kills its workers affects no other job, and a stop loses nothing."""

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any

import asyncpg

from tests.faults.by_word import ByWord
from tests.faults.history import History, RunFigures
from tests.faults.processes import Fleet
from tests.standins.behaviours import Hang, Reply, Slow
from tests.standins.models import ModelServer

ATTEMPTS = 3
GRACE = 30.0  # seconds from SIGTERM to the end


async def test_a_job_that_kills_its_workers_fails_and_the_others_complete(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    report: Callable[[RunFigures], None],
) -> None:
    """No other job may fail with it, although they ran in the same worker."""
    models.chat_default = ByWord({"poison": Hang()}, Slow(0.2, Reply("[]")))
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", llm_timeout=None, job_max_attempts=ATTEMPTS)
    fleet.serve()
    fleet.start("beat")
    history: History = await remember(fleet)
    poison = await history.save(category="poison")
    await history.save_batch(40)
    for attempt in range(1, ATTEMPTS + 1):
        worker = fleet.start("work")
        await asyncio.to_thread(_wait_for_poison, models, attempt)
        worker.kill()
    fleet.start("work")
    await history.quiet(within=40)
    memories = {memory["id"]: memory for memory in await history.listed()}
    failed = memories.pop(poison.id)
    assert (failed["state"], failed["failure_reason"]) == (
        "failed",
        f"its worker ended {ATTEMPTS} times while working on it",
    )
    assert {memory["state"] for memory in memories.values()} == {"kept-raw"}, history.seed
    report(await history.check("job that kills its worker", ATTEMPTS))


def _wait_for_poison(models: ModelServer, times: int) -> None:
    deadline = time.monotonic() + 30
    while sum(b"poison" in call.raw for call in models.chat_calls) < times:
        assert time.monotonic() < deadline, f"the poisonous memory was not sent {times} times"
        time.sleep(0.002)


async def test_a_backlog_of_one_tenant_does_not_delay_another_tenant(
    make_fleet: Callable[..., Fleet], remember: Callable[..., Any], models: ModelServer
) -> None:
    models.chat_default = Slow(0.02, Reply("[]"))
    fleet = make_fleet(llm_base_url=models.url, llm_model="m")
    fleet.serve()
    greedy: History = await remember(fleet, "greedy")
    modest: History = await remember(fleet, "modest")
    await greedy.save_batch(1000)
    await modest.save_batch(10)
    for role in ("work", "beat"):
        fleet.start(role)
    await modest.quiet(within=30)
    assert (await greedy.status())["pending"]["enrichment"] >= 500


async def test_a_worker_stopped_under_load_ends_in_time_and_releases_its_jobs(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    report: Callable[[RunFigures], None],
) -> None:
    """The lease is that of production: the worker's jobs must not wait for its end."""
    models.chat_default = Slow(0.5, Reply("[]"))
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", job_lease=120, llm_timeout=60)
    fleet.serve()
    fleet.start("beat")
    history: History = await remember(fleet)
    await history.save_batch(200)
    worker = fleet.start("work")
    await asyncio.to_thread(models.wait_for_calls, 40, 20)
    models.chat_default = Hang()
    await asyncio.to_thread(models.wait_for_calls, len(models.calls) + 8, 20)
    worker.signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.ended, GRACE), fleet.log[-2000:]
    assert worker.code == 0, fleet.log[-2000:]
    assert await _count_claimed(fleet) == 0
    models.chat_default = Reply("[]")
    models.release()
    fleet.start("work")
    await history.quiet(within=60)
    assert {memory["state"] for memory in await history.listed()} == {"kept-raw"}
    report(await history.check("worker stopped under load", 1))


async def _count_claimed(fleet: Fleet) -> int:
    assert fleet.settings.postgres_url is not None
    database = await asyncpg.connect(fleet.settings.postgres_url.get_secret_value())
    try:
        return int(
            await database.fetchval(
                "SELECT count(*) FROM job WHERE lease_token IS NOT NULL AND run_at > now()"
            )
        )
    finally:
        await database.close()
