"""Tasks of passes are sent once, a few ahead of the workers, in turn between tenants."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from shared.foundation import config
from shared.foundation.stages import DREAM_PASS, MINE_PASS, PASS_STAGES, DreamPass, RecordKind, Stage
from shared.jobs import queries as job_queries
from shared.jobs import sent_tasks
from shared.jobs.table import job
from shared.platform.resources import Resources
from tests import run_pass
from tests.conftest import Gateway, running_gateway
from tests.draining import make_due
from workers.passes import dispatch
from workers.sweep.jobs import dispatch_due_jobs, fail_exhausted_jobs

RUNS = 20


@pytest.fixture
async def quiet_gateway(
    make_settings: Callable[..., config.Settings], database: dict[str, str], tenant: str
) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(**database), tenant) as served:
        yield served


@pytest.fixture
def sent(quiet_gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Collect the tasks that are sent instead of sending them."""
    tasks: list[tuple[str, Any]] = []
    publisher = quiet_gateway.resources.publisher

    def collect(task: str, **arguments: str | None) -> None:
        tasks.append((task, arguments))

    monkeypatch.setattr(publisher, "send", collect)
    monkeypatch.setattr(publisher, "wake", lambda stage, jobs=1: tasks.append((stage.task, {"due": jobs})))
    return tasks


async def start_runs(gateway: Gateway, count: int, tenant: str | None = None) -> None:
    client = gateway.client if tenant is None else await gateway.new_client(tenant)
    for number in range(count):
        body = {"user_id": f"user-{number}", "passes": ["deduplicate"]}
        assert (await client.post("/v1/dreams", json=body)).status_code == 201


async def run_task(resources: Resources, task: tuple[str, Any]) -> str:
    name, arguments = task
    return await run_pass.run_pass(
        resources, arguments["tenant"], arguments["run"], DreamPass(name.removeprefix("dream."))
    )


async def test_one_worker_gets_one_task_for_each_pass_and_another_tenant_soon_has_its_turn(
    quiet_gateway: Gateway, sent: list[tuple[str, Any]]
) -> None:
    """The dispatch is repeated many times during each pass, as beat does while a model is slow."""
    resources = quiet_gateway.resources
    await start_runs(quiet_gateway, RUNS)
    await dispatch_due_jobs(resources)
    await start_runs(quiet_gateway, 1, tenant="other-tenant")
    sent[:] = [task for task in sent if task[0] == "dream.deduplicate"]

    order: list[str] = []
    for task in sent:  # grows: each pass has others sent
        assert await run_task(resources, task) in {"done", "skipped: no memories differ only in punctuation"}
        order.append(task[1]["tenant"])
        for _ in range(3):
            await dispatch_due_jobs(resources)

    assert len(order) == len(sent) == RUNS + 1, "one message for each pass"
    assert order.index("other-tenant") < RUNS / 2


async def test_a_task_that_was_not_started_is_sent_again_and_two_tasks_run_the_pass_once(
    quiet_gateway: Gateway, sent: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = quiet_gateway.resources
    await start_runs(quiet_gateway, 1)
    sent.clear()
    assert await dispatch.dispatch_next_passes(resources) == 1
    assert await dispatch.dispatch_next_passes(resources) == 0
    monkeypatch.setattr(sent_tasks, "RESEND_SECONDS", 0.0)
    assert await dispatch.dispatch_next_passes(resources) == 1

    results = [await run_task(resources, task) for task in sent]

    assert results[1:] == ["not due"]
    assert results[0].startswith("skipped")


async def test_a_pass_whose_worker_died_is_sent_again_when_its_lease_has_ended(
    quiet_gateway: Gateway, sent: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = quiet_gateway.resources
    await start_runs(quiet_gateway, 1)
    sent.clear()
    await dispatch.dispatch_next_passes(resources)

    async def die(context: object) -> object:
        del context
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setitem(run_pass.PASSES, DreamPass.DEDUPLICATE, die)
        with pytest.raises(KeyboardInterrupt):
            await run_task(resources, sent[0])
    assert await dispatch.dispatch_next_passes(resources) == 0
    await make_due(resources)
    assert await dispatch.dispatch_next_passes(resources) == 1


async def add_orphans(gateway: Gateway, count: int, stage: Stage = DREAM_PASS, attempts: int = 0) -> None:
    """Leave jobs whose runs are gone, as erasures of earlier releases did."""
    tenant, versions = gateway.tenant, {f"gone-{number}": 1 for number in range(count)}
    async with gateway.resources.postgres.for_tenant(tenant) as tx:
        await job_queries.enqueue(tx, tenant, RecordKind.DREAM_RUN, stage, versions)
        await tx.execute(update(job).where(job.c.record_id.in_(versions)).values(attempts=attempts))


async def jobs_of_runs(gateway: Gateway) -> list[str]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        is_of_run = (job.c.tenant == gateway.tenant, job.c.kind == RecordKind.DREAM_RUN)
        return list(await tx.scalars(select(job.c.record_id).where(*is_of_run)))


@pytest.mark.parametrize("stage", PASS_STAGES, ids=lambda stage: stage.name)
async def test_jobs_whose_runs_are_gone_end_and_hold_no_place_of_another(
    quiet_gateway: Gateway, sent: list[tuple[str, Any]], stage: Stage
) -> None:
    passes = {DREAM_PASS: "deduplicate", MINE_PASS: "mine_facts"}
    await add_orphans(quiet_gateway, 5, stage)
    body = {"user_id": "ada", "passes": [passes[stage]]}
    run = (await quiet_gateway.client.post("/v1/dreams", json=body)).json()
    sent.clear()
    assert await dispatch.dispatch_next_passes(quiet_gateway.resources) == 1
    assert [arguments["run"] for _, arguments in sent] == [run["id"]]
    assert await jobs_of_runs(quiet_gateway) == [run["id"]]


async def test_the_sweep_ends_a_job_whose_run_is_gone_and_whose_attempts_are_used_up(
    quiet_gateway: Gateway,
) -> None:
    await add_orphans(quiet_gateway, 1, attempts=99)
    assert await fail_exhausted_jobs(quiet_gateway.resources) == 1
    assert await jobs_of_runs(quiet_gateway) == []


async def test_the_task_of_a_run_that_is_gone_ends_its_job(quiet_gateway: Gateway) -> None:
    await add_orphans(quiet_gateway, 1)
    arguments = (quiet_gateway.resources, quiet_gateway.tenant, "gone-0", DreamPass.DEDUPLICATE)
    assert await run_pass.run_pass(*arguments) == "not due"
    assert await jobs_of_runs(quiet_gateway) == []


async def test_a_job_of_a_run_that_has_ended_ends(
    quiet_gateway: Gateway, sent: list[tuple[str, Any]]
) -> None:
    await start_runs(quiet_gateway, 1)
    [run_id] = await jobs_of_runs(quiet_gateway)
    sent.clear()
    await dispatch.dispatch_next_passes(quiet_gateway.resources)
    assert (await run_task(quiet_gateway.resources, sent[0])).startswith("skipped")
    async with quiet_gateway.resources.postgres.for_tenant(quiet_gateway.tenant) as tx:
        tenant, kind = quiet_gateway.tenant, RecordKind.DREAM_RUN
        await job_queries.enqueue(tx, tenant, kind, DREAM_PASS, {run_id: 1})
    assert await dispatch.dispatch_next_passes(quiet_gateway.resources) == 0
    assert await jobs_of_runs(quiet_gateway) == []
