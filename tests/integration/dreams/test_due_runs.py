"""A scope's run is started once, by the worker that has its job, and after the run that has not ended."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from shared.conversation.turns import queries as turn_queries
from shared.foundation import config
from shared.foundation.stages import DREAM_START, Pipeline, RecordKind
from shared.jobs import claim
from shared.jobs.job import Job
from shared.jobs.table import job
from tests.conftest import Gateway, running_gateway
from tests.draining import make_due
from tests.idle_sessions import make_idle
from tests.integration.dreams.conftest import Active, Serve, create_session
from tests.integration.dreams.due_runs import due_at, runs
from tests.integration.dreams.evaluations import evaluation_due_in
from workers.dream import due_evaluations
from workers.dream.due_runs import start_due_runs


async def test_no_run_is_started_by_a_worker_that_has_lost_the_job(
    active: Active, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with active(dream_quiet_period=0) as gateway:
        await make_due(gateway.resources)

        async def is_active_for_long(*args: Any) -> bool:
            """Take so long that the lease ends and another worker claims the job."""
            del args
            async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
                await tx.execute(update(job).values(lease_token=func.gen_random_uuid()))
            return False

        monkeypatch.setattr(turn_queries, "has_turn_within", is_active_for_long)
        await start_due_runs(gateway.resources)
        assert await runs(gateway) == []


async def test_a_scope_whose_run_has_not_ended_is_due_again_after_it(active: Active) -> None:
    async with active(dream_quiet_period=0) as gateway:
        await gateway.client.post("/v1/dreams", json={"passes": ["deduplicate"]})
        await make_due(gateway.resources)
        await start_due_runs(gateway.resources)
        [run] = await runs(gateway)
        assert await due_at(gateway) is not None
        async with gateway.resources.postgres.across_tenants() as tx:
            is_of_run = job.c.kind == RecordKind.DREAM_RUN
            passes = await tx.scalars(select(job.c.record_id).where(is_of_run))
            assert list(passes) == [run["id"]], "no job of a run that does not exist"


async def claim_evaluation(gateway: Gateway) -> Job:
    """Claim the job of the tenant's scope that evaluates sessions."""
    await make_due(gateway.resources)
    async with gateway.resources.postgres.across_tenants() as tx:
        jobs = await claim.claim_batch(tx, DREAM_START, 10, 60, 5)
    [evaluation] = [claimed for claimed in jobs if claimed.pipeline is Pipeline.EVALUATION]
    return evaluation


async def test_no_evaluation_is_started_by_a_worker_that_has_lost_the_job(serve: Serve) -> None:
    async with serve() as gateway:
        await make_idle(gateway, await create_session(gateway, "Where is the tram?", "Thanks."))
        claimed = await claim_evaluation(gateway)
        lost = replace(claimed, lease_token=str(uuid4()))
        await due_evaluations.start_or_reschedule(gateway.resources, lost)
        assert await runs(gateway) == []
        await due_evaluations.start_or_reschedule(gateway.resources, claimed)
        assert len(await runs(gateway)) == 1


async def test_sessions_are_evaluated_after_the_run_that_has_not_ended(serve: Serve) -> None:
    async with serve(dream_quiet_period=777) as gateway:
        await make_idle(gateway, await create_session(gateway, "Where is the tram?", "Thanks."))
        await gateway.client.post("/v1/dreams", json={"passes": ["deduplicate"]})
        await due_evaluations.start_or_reschedule(gateway.resources, await claim_evaluation(gateway))
        assert len(await runs(gateway)) == 1
        remaining = await evaluation_due_in(gateway)
        assert remaining is not None
        assert 700 < remaining <= 777


async def test_without_a_model_no_evaluation_is_started(
    make_settings: Callable[..., config.Settings], database: dict[str, str], tenant: str
) -> None:
    async with running_gateway(make_settings(**database), tenant) as gateway:
        await make_idle(gateway, await create_session(gateway, "Where is the tram?", "Thanks."))
        await due_evaluations.start_or_reschedule(gateway.resources, await claim_evaluation(gateway))
        assert await runs(gateway) == []
        async with gateway.resources.postgres.for_tenant(tenant) as tx:
            where = (job.c.tenant == tenant, job.c.pipeline == Pipeline.EVALUATION)
            assert await tx.scalar(select(func.count()).where(*where)) == 0


async def test_a_pass_that_is_switched_off_is_in_no_run(active: Active) -> None:
    async with active(dream_disabled_passes=["deduplicate", "consolidate"]) as gateway:
        started = (await gateway.client.post("/v1/dreams", json={})).json()
        names = [pass_["name"] for pass_ in started["passes"]]
        assert "extract_episodes" in names
        assert {"deduplicate", "consolidate"}.isdisjoint(names)
        refused = await gateway.client.post("/v1/dreams", json={"passes": ["consolidate"], "user_id": "ada"})
        assert refused.status_code == 422
