"""Periodic tasks run once per interval, even while two Celery beats run."""

import asyncio

from sqlalchemy import text

from shared.jobs import periodic
from tests.integration.sweep.stack import TestStack
from workers.sweep import sweep
from workers.sweep.sweep import Counts


async def _claim_run(stack: TestStack) -> bool:
    async with stack.resources.postgres.across_tenants() as tx:
        return await periodic.claim_run(tx, stack.tenant, 60)


async def _age_runs(stack: TestStack, seconds: float) -> None:
    async with stack.resources.postgres.across_tenants() as tx:
        statement = text(
            "UPDATE periodic_run SET last_run_at = last_run_at - make_interval(secs => :seconds)"
        )
        await tx.execute(statement, {"seconds": seconds})


async def test_of_concurrent_triggers_exactly_one_runs(stack: TestStack) -> None:
    assert sorted(await asyncio.gather(*(_claim_run(stack) for _ in range(8)))) == [False] * 7 + [True]


async def test_the_interval_begins_with_the_last_trigger_that_ran(stack: TestStack) -> None:
    assert await _claim_run(stack)
    await _age_runs(stack, 40)
    assert not await _claim_run(stack)
    await _age_runs(stack, 25)
    assert await _claim_run(stack)
    assert not await _claim_run(stack)


async def test_a_second_beat_does_not_sweep_twice_and_the_sweep_runs_every_interval(
    stack: TestStack,
) -> None:
    first_session = await stack.open_session(ttl_seconds=60)
    await stack.backdate("session", "expires_at", 1, id=first_session)
    results = await asyncio.gather(*(sweep.sweep_if_due(stack.resources) for _ in range(2)))
    assert sorted(counts.expired_sessions for counts in results) == [0, 1]
    second_session = await stack.open_session(ttl_seconds=60)
    await stack.backdate("session", "expires_at", 1, id=second_session)
    assert await sweep.sweep_if_due(stack.resources) == Counts()
    await _age_runs(stack, stack.resources.settings.sweep_interval)
    assert (await sweep.sweep_if_due(stack.resources)).expired_sessions == 1
