"""A dead job is counted once, in the transaction that marks it."""

import asyncio

from shared.jobs import counters as fleet_counters
from shared.jobs import dead_jobs
from shared.jobs.job import Job
from tests.integration.queue.conftest import Queue


async def mark_dead(queue: Queue, claim: Job) -> None:
    async with queue.resources.postgres.across_tenants() as connection:
        await dead_jobs.mark_dead(connection, claim, "it bites")


async def deaths(queue: Queue) -> dict[str, float]:
    async with queue.resources.postgres.across_tenants() as connection:
        counters = await fleet_counters.read_all(connection)
    return {row["labels"]: row["value"] for row in counters if row["name"] == "job_deaths"}


async def test_a_dead_job_is_counted_once_by_its_stage(queue: Queue) -> None:
    await queue.add("a", "m")
    (claim,) = await queue.claim()
    await asyncio.gather(mark_dead(queue, claim), mark_dead(queue, claim))
    assert await deaths(queue) == {"enrich": 1}


async def test_a_job_that_was_never_claimed_is_counted_once_too(queue: Queue) -> None:
    await queue.begin()
    (unclaimed,) = await queue.add_index("a", "m")
    await mark_dead(queue, unclaimed)
    await mark_dead(queue, unclaimed)
    assert await deaths(queue) == {"index": 1}


async def test_a_claim_that_is_no_longer_valid_counts_nothing(queue: Queue) -> None:
    await queue.add("a", "m")
    (lost,) = await queue.claim()
    await queue.let_leases_end()
    await queue.claim()
    await mark_dead(queue, lost)
    assert await deaths(queue) == {}
    assert (await queue.row())["dead_at"] is None


async def test_a_mark_that_is_rolled_back_is_not_counted(queue: Queue) -> None:
    await queue.add("a", "m")
    (claim,) = await queue.claim()
    async with queue.resources.postgres.across_tenants() as connection:
        await dead_jobs.mark_dead(connection, claim, "it bites")
        await connection.rollback()
    assert await deaths(queue) == {}
    assert (await queue.row())["dead_at"] is None
