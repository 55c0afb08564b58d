"""DR1: when a scope's run is due, by interval or by cron expression, and how it is started."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from shared.foundation.stages import DREAM_START, ReasonCode
from shared.jobs import dream_schedule
from shared.jobs.table import job
from tests.agent import Agent
from tests.draining import make_due
from tests.integration.dreams.conftest import Active
from tests.integration.dreams.due_runs import due_at, runs
from workers.dream.due_runs import start_due_runs


async def test_an_active_scope_is_due_five_minutes_after_its_first_activity(active: Active) -> None:
    async with active() as model_gateway:
        run_at = await due_at(model_gateway)
        assert run_at is not None
        assert timedelta(minutes=4) < run_at - datetime.now(UTC) <= timedelta(minutes=5)


async def test_with_a_cron_expression_an_active_scope_is_due_at_its_next_time(active: Active) -> None:
    """The interval and the initial delay don't count then."""
    before = datetime.now(UTC)
    async with active(dream_cron="17 3 * * *", dream_interval=1, dream_initial_delay=0) as model_gateway:
        assert await due_at(model_gateway) in {
            dream_schedule.next_cron_time("17 3 * * *", moment) for moment in (before, datetime.now(UTC))
        }
        await start_due_runs(model_gateway.resources)
        assert await runs(model_gateway) == []


async def test_activity_after_a_run_is_due_at_the_next_cron_time(active: Active) -> None:
    async with active(dream_cron="17 3 * * *", dream_quiet_period=0) as model_gateway:
        await make_due(model_gateway.resources)
        await start_due_runs(model_gateway.resources)
        assert [(run["actor"], run["state"]) for run in await runs(model_gateway)] == [
            ("schedule", "running")
        ]
        assert await due_at(model_gateway) is None
        agent = Agent(model_gateway.client, model_gateway.tenant)
        await agent.append_turn(await agent.session(), "And so is the pier.", role="user")
        next_run_at = await due_at(model_gateway)
        assert next_run_at is not None
        assert (next_run_at.hour, next_run_at.minute) == (3, 17)
        assert next_run_at > datetime.now(UTC)


async def test_an_active_scope_is_rescheduled_until_it_is_quiet(active: Active) -> None:
    async with active(dream_quiet_period=1000) as model_gateway:
        await make_due(model_gateway.resources)
        await start_due_runs(model_gateway.resources)
        assert await runs(model_gateway) == []
        run_at = await due_at(model_gateway)
        assert run_at is not None
        assert timedelta(seconds=900) < run_at - datetime.now(UTC) <= timedelta(seconds=1000)
        async with model_gateway.resources.postgres.for_tenant(model_gateway.tenant) as tx:
            statement = select(job.c.reason_code).where(job.c.pipeline == DREAM_START.pipeline)
            assert await tx.scalar(statement) == ReasonCode.NOT_READY


async def test_without_scheduled_dreams_no_scope_is_due(active: Active) -> None:
    async with active(dream_enabled=False) as model_gateway:
        assert await due_at(model_gateway) is None
