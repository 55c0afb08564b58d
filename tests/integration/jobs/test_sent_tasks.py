"""Which passes have their tasks sent: due ones, each once, two ahead, tenants in turn."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from sqlalchemy import func, text, update

from shared.foundation.stages import DREAM_PASS, RecordKind
from shared.infra.postgres import seconds
from shared.jobs import queries as job_queries
from shared.jobs import sent_tasks
from shared.jobs.table import job
from tests.integration.jobs.conftest import ATTEMPTS, JobQueue


async def add_runs(queue: JobQueue, tenant: str, *runs: str, delay: float = 0) -> None:
    async with queue.resources.postgres.for_tenant(tenant) as connection:
        versions = dict.fromkeys(runs, 1)
        await job_queries.enqueue(connection, tenant, RecordKind.DREAM_RUN, DREAM_PASS, versions, delay=delay)


async def choose(queue: JobQueue) -> list[str]:
    async with queue.resources.postgres.across_tenants() as connection:
        jobs = await sent_tasks.choose_jobs(connection, DREAM_PASS, ATTEMPTS)
    return sorted(f"{job.tenant}/{job.record_id}" for job in jobs)


async def change(queue: JobQueue, **values: Any) -> None:
    async with queue.resources.postgres.across_tenants() as connection:
        await connection.execute(update(job).values(values))


async def test_two_tasks_are_sent_ahead_and_each_once(queue: JobQueue) -> None:
    await add_runs(queue, "a", "1", "2", "3")
    assert len(await choose(queue)) == 2
    assert await choose(queue) == []


async def test_tenants_take_turns(queue: JobQueue) -> None:
    await add_runs(queue, "a", "1", "2", "3")
    await add_runs(queue, "b", "4")
    chosen = await choose(queue)
    assert [name.partition("/")[0] for name in chosen] == ["a", "b"]


async def test_a_claimed_pass_makes_place_for_another(queue: JobQueue) -> None:
    await add_runs(queue, "a", "1", "2")
    await choose(queue)
    await queue.claim(stage=DREAM_PASS)
    await add_runs(queue, "a", "3", "4", "5")
    assert len(await choose(queue)) == 2


async def test_of_a_tenant_only_due_jobs_with_attempts_left_are_sent(queue: JobQueue) -> None:
    await add_runs(queue, "a", "exhausted")
    await change(queue, attempts=ATTEMPTS)
    await add_runs(queue, "a", "later", delay=60)
    await add_runs(queue, "a", "due")
    assert await choose(queue) == ["a/due"]


async def test_a_task_that_was_not_started_in_time_is_sent_again(queue: JobQueue) -> None:
    await add_runs(queue, "a", "1")
    assert await choose(queue) == ["a/1"]
    await change(queue, sent_at=func.now() - seconds(sent_tasks.RESEND_SECONDS - 20))
    assert await choose(queue) == []
    await change(queue, sent_at=func.now() - seconds(sent_tasks.RESEND_SECONDS + 1))
    assert await choose(queue) == ["a/1"]


async def test_a_task_that_was_sent_is_not_sent_again_beside_another(queue: JobQueue) -> None:
    await add_runs(queue, "a", "1")
    assert await choose(queue) == ["a/1"]
    await add_runs(queue, "a", "2")
    assert await choose(queue) == ["a/2"]


async def test_two_workers_that_look_at_once_do_not_both_fill_the_places(queue: JobQueue) -> None:
    await add_runs(queue, "a", "1", "2", "3", "4")
    async with queue.resources.postgres.across_tenants() as connection:
        assert len(await sent_tasks.choose_jobs(connection, DREAM_PASS, ATTEMPTS)) == 2
        other = asyncio.create_task(choose(queue))
        await wait_until_blocked(queue, other)
    assert await other == []


async def wait_until_blocked(queue: JobQueue, other: "asyncio.Task[Any] | Awaitable[Any]") -> None:
    """Wait until a task waits for a lock, or has ended."""
    is_waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    async with asyncio.timeout(30):
        while not asyncio.ensure_future(other).done():
            async with queue.resources.postgres.across_tenants() as connection:
                if await connection.scalar(is_waiting):
                    return
            await asyncio.sleep(0.01)
