"""Issue 5, point 2: beat may run twice: a second ring for the same window is no-op."""

import asyncio

from sqlalchemy import text

from shared.jobs import periodic
from tests.integration.sweep.house import TestStack
from workers.sweep import sweep
from workers.sweep.sweep import Counts


async def _ring(house: TestStack) -> bool:
    async with house.resources.postgres.across_tenants() as connection:
        return await periodic.claim_run(connection, house.tenant, 60)


async def _let_pass(house: TestStack, seconds: float) -> None:
    async with house.resources.postgres.across_tenants() as connection:
        earlier = text("UPDATE periodic_run SET last_run_at = last_run_at - make_interval(secs => :seconds)")
        await connection.execute(earlier, {"seconds": seconds})


async def test_of_rings_at_once_one_is_followed(house: TestStack) -> None:
    assert sorted(await asyncio.gather(*(_ring(house) for _ in range(8)))) == [False] * 7 + [True]


async def test_the_next_window_begins_with_the_ring_that_was_followed(house: TestStack) -> None:
    assert await _ring(house)
    await _let_pass(house, 40)
    assert not await _ring(house)
    await _let_pass(house, 25)
    assert await _ring(house)
    assert not await _ring(house)


async def test_a_second_clock_sweeps_nothing_twice_and_the_sweep_goes_on_every_window(
    house: TestStack,
) -> None:
    over = await house.open(ttl_seconds=60)
    await house.backdate("session", "expires_at", 1, id=over)
    both = await asyncio.gather(*(sweep.sweep_if_due(house.resources) for _ in range(2)))
    assert sorted(counts.expired_sessions for counts in both) == [0, 1]
    again = await house.open(ttl_seconds=60)
    await house.backdate("session", "expires_at", 1, id=again)
    assert await sweep.sweep_if_due(house.resources) == Counts()
    await _let_pass(house, house.resources.settings.sweep_interval)
    assert (await sweep.sweep_if_due(house.resources)).expired_sessions == 1
