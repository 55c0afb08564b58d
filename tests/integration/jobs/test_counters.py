"""Counters that a worker gathers reach Postgres once a second, and at its end."""

import asyncio

from shared.jobs import counters as fleet_counters
from tests.agent import wait_until
from tests.integration.jobs.conftest import JobQueue

NAME = "gathered"


async def values(queue: JobQueue) -> dict[str, float]:
    async with queue.resources.postgres.across_tenants() as tx:
        rows = await fleet_counters.read_all(tx)
    return {row["labels"]: row["value"] for row in rows if row["name"] == NAME}


async def test_gathered_increments_are_summed_and_written_later(queue: JobQueue) -> None:
    postgres = queue.resources.postgres
    async with fleet_counters.gather_detached(postgres):
        for _ in range(3):
            await fleet_counters.increment_detached(postgres, {NAME: {"a": 2, "b": 0.5}})
        assert await values(queue) == {}

        async def written() -> bool:
            return await values(queue) == {"a": 6, "b": 1.5}

        await wait_until(written)
        await fleet_counters.increment_detached(postgres, {NAME: {"a": 1}})
        assert await values(queue) == {"a": 6, "b": 1.5}
    assert await values(queue) == {"a": 7, "b": 1.5}


async def test_outside_of_the_block_increments_are_written_at_once(queue: JobQueue) -> None:
    postgres = queue.resources.postgres
    async with fleet_counters.gather_detached(postgres):
        pass
    await fleet_counters.increment_detached(postgres, {NAME: {"a": 1}})
    assert await values(queue) == {"a": 1}


async def test_nothing_is_lost_between_two_writes(queue: JobQueue) -> None:
    postgres = queue.resources.postgres
    async with fleet_counters.gather_detached(postgres):
        await asyncio.gather(
            *(fleet_counters.increment_detached(postgres, {NAME: {"a": 1}}) for _ in range(100))
        )
    assert await values(queue) == {"a": 100}
