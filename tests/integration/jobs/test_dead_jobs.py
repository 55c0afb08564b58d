"""A dead job is counted once, in the transaction that marks it."""

import asyncio
from contextlib import suppress

from shared.jobs import counters as fleet_counters
from shared.jobs import dead_jobs
from shared.jobs.job import Job
from tests.integration.jobs.conftest import JobQueue


async def mark_dead(queue: JobQueue, job: Job) -> None:
    async with queue.resources.postgres.across_tenants() as tx:
        await dead_jobs.mark_dead(tx, job, "it bites")


async def deaths(queue: JobQueue) -> dict[str, float]:
    async with queue.resources.postgres.across_tenants() as tx:
        counters = await fleet_counters.read_all(tx)
    return {row["labels"]: row["value"] for row in counters if row["name"] == "job_deaths"}


async def test_a_dead_job_is_counted_once_by_its_stage(queue: JobQueue) -> None:
    await queue.add("a", "m")
    (job,) = await queue.claim()
    await asyncio.gather(mark_dead(queue, job), mark_dead(queue, job))
    assert await deaths(queue) == {"enrich": 1}


async def test_a_job_that_was_never_claimed_is_counted_once_too(queue: JobQueue) -> None:
    await queue.create_generation()
    (unclaimed_job,) = await queue.add_index("a", "m")
    await mark_dead(queue, unclaimed_job)
    await mark_dead(queue, unclaimed_job)
    assert await deaths(queue) == {"index": 1}


async def test_a_claim_that_is_no_longer_valid_counts_nothing(queue: JobQueue) -> None:
    await queue.add("a", "m")
    (former_job,) = await queue.claim()
    await queue.end_leases()
    await queue.claim()
    await mark_dead(queue, former_job)
    assert await deaths(queue) == {}
    assert (await queue.only_row())["dead_at"] is None


async def test_a_mark_that_is_rolled_back_is_not_counted(queue: JobQueue) -> None:
    await queue.add("a", "m")
    (job,) = await queue.claim()
    with suppress(LookupError):
        async with queue.resources.postgres.across_tenants() as tx:
            await dead_jobs.mark_dead(tx, job, "it bites")
            raise LookupError
    assert await deaths(queue) == {}
    assert (await queue.only_row())["dead_at"] is None
