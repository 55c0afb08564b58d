"""DR1: when a scope's run is due, by interval or by cron expression, and how one begins."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from shared.foundation import config
from shared.foundation.stages import DREAM_START, ReasonCode
from shared.jobs import dream_schedule
from shared.jobs.table import job
from tests.conftest import Gateway, serving
from tests.draining import make_due
from tests.journey.agent import Agent
from workers.dream.due_runs import start_due_runs

MakeSettings = Callable[..., config.Settings]
Active = Callable[..., Any]


@pytest.fixture
def active(make_settings: MakeSettings, tenant: str) -> Active:
    """Return a gateway with these settings, in whose one scope somebody has said something."""

    @asynccontextmanager
    async def make(**changes: Any) -> AsyncIterator[Gateway]:
        async with serving(make_settings(apart=True, **changes), tenant) as house:
            agent = Agent(house.client, tenant)
            await agent.say(await agent.session(), "The lighthouse is white.", role="user")
            yield house

    return make


async def due_at(house: Gateway) -> datetime | None:
    mine = (job.c.tenant == house.tenant, job.c.stage == DREAM_START.name)
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        when: datetime | None = await connection.scalar(select(job.c.run_at).where(*mine))
    return when


async def runs(house: Gateway) -> list[dict[str, Any]]:
    return list((await house.client.get("/v1/dreams")).json()["results"])


async def test_an_active_scope_is_due_five_minutes_after_its_first_activity(active: Active) -> None:
    async with active() as house:
        when = await due_at(house)
        assert when is not None
        assert timedelta(minutes=4) < when - datetime.now(UTC) <= timedelta(minutes=5)


async def test_with_a_cron_expression_an_active_scope_is_due_at_its_next_time(active: Active) -> None:
    """The interval and the wait after the first activity don't count then."""
    before = datetime.now(UTC)
    async with active(dream_cron="17 3 * * *", dream_interval=1, dream_initial_delay=0) as house:
        assert await due_at(house) in {
            dream_schedule.next_cron_time("17 3 * * *", moment) for moment in (before, datetime.now(UTC))
        }
        await start_due_runs(house.resources)
        assert await runs(house) == []


async def test_after_a_run_the_next_activity_waits_for_the_next_time_again(active: Active) -> None:
    async with active(dream_cron="17 3 * * *", dream_quiet_period=0) as house:
        await make_due(house.resources)
        await start_due_runs(house.resources)
        assert [(one["actor"], one["state"]) for one in await runs(house)] == [("clock", "running")]
        assert await due_at(house) is None
        agent = Agent(house.client, house.tenant)
        await agent.say(await agent.session(), "And so is the pier.", role="user")
        again = await due_at(house)
        assert again is not None
        assert (again.hour, again.minute) == (3, 17)
        assert again > datetime.now(UTC)


async def test_a_scope_that_somebody_is_working_in_is_left_alone_until_it_is_quiet(active: Active) -> None:
    async with active(dream_quiet_period=1000) as house:
        await make_due(house.resources)
        await start_due_runs(house.resources)
        assert await runs(house) == []
        when = await due_at(house)
        assert when is not None
        assert timedelta(seconds=900) < when - datetime.now(UTC) <= timedelta(seconds=1000)
        async with house.resources.postgres.tenant(house.tenant) as connection:
            statement = select(job.c.reason_code).where(job.c.stage == DREAM_START.name)
            assert await connection.scalar(statement) == ReasonCode.NOT_READY


async def test_switched_off_no_scope_is_ever_due(active: Active) -> None:
    async with active(dream_enabled=False) as house:
        assert await due_at(house) is None
