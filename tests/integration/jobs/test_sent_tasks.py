"""Which passes have their tasks sent: due ones, each once, two ahead, tenants in turn."""

import asyncio

from sqlalchemy import func

from shared.foundation.stages import DREAM_PASS, RecordKind
from shared.infra.postgres import seconds
from shared.jobs import queries as job_queries
from shared.jobs import sent_tasks
from shared.jobs.table import job
from tests.integration.jobs.conftest import ATTEMPTS, JobQueue


async def add_runs(queue: JobQueue, tenant: str, *runs: str, delay: float = 0) -> None:
    async with queue.resources.postgres.for_tenant(tenant) as tx:
        versions = dict.fromkeys(runs, 1)
        await job_queries.enqueue(tx, tenant, RecordKind.DREAM_RUN, DREAM_PASS, versions, delay=delay)


async def choose(queue: JobQueue) -> list[str]:
    async with queue.resources.postgres.across_tenants() as tx:
        jobs = await sent_tasks.choose_jobs(tx, DREAM_PASS, ATTEMPTS)
    return sorted(f"{job.tenant}/{job.record_id}" for job in jobs)


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
    await queue.change(attempts=ATTEMPTS)
    await add_runs(queue, "a", "later", delay=60)
    await add_runs(queue, "a", "due")
    assert await choose(queue) == ["a/due"]


async def test_a_task_that_was_not_started_in_time_is_sent_again(queue: JobQueue) -> None:
    await add_runs(queue, "a", "1")
    assert await choose(queue) == ["a/1"]
    await queue.change(sent_at=func.now() - seconds(sent_tasks.RESEND_SECONDS - 20))
    assert await choose(queue) == []
    await queue.change(sent_at=func.now() - seconds(sent_tasks.RESEND_SECONDS + 1))
    assert await choose(queue) == ["a/1"]


async def test_a_task_that_was_sent_is_not_sent_again_beside_another(queue: JobQueue) -> None:
    await add_runs(queue, "a", "1")
    assert await choose(queue) == ["a/1"]
    await add_runs(queue, "a", "2")
    assert await choose(queue) == ["a/2"]


async def test_jobs_whose_tasks_are_lost_whenever_they_are_sent_let_the_others_have_their_turn(
    queue: JobQueue,
) -> None:
    await add_runs(queue, "a", "1", "2")
    assert len(await choose(queue)) == 2
    await add_runs(queue, "a", "3", "4")
    assert await choose(queue) == [], "both places are taken"
    await queue.change(
        sent_at=job.c.sent_at - seconds(sent_tasks.RESEND_SECONDS), run_at=job.c.run_at - seconds(60)
    )
    first = await choose(queue)
    await queue.change(
        sent_at=job.c.sent_at - seconds(sent_tasks.RESEND_SECONDS), run_at=job.c.run_at - seconds(60)
    )
    assert sorted(first + await choose(queue)) == ["a/1", "a/2", "a/3", "a/4"]


async def test_two_workers_that_look_at_once_do_not_both_fill_the_places(queue: JobQueue) -> None:
    await add_runs(queue, "a", "1", "2", "3", "4")
    async with queue.resources.postgres.across_tenants() as tx:
        assert len(await sent_tasks.choose_jobs(tx, DREAM_PASS, ATTEMPTS)) == 2
        other = asyncio.create_task(choose(queue))
        await queue.wait_until_blocked(other)
    assert await other == []
