"""A dream run that is started, or goes on, while its user or agent is erased leaves no job behind."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from shared.dreams.runs import start
from shared.dreams.runs.table import dream_pass, dream_run
from shared.foundation.content import Subject
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import DREAM_PASS, DreamPass, Pipeline, RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import claim, dream_schedule, removals
from shared.jobs import queries as job_queries
from shared.jobs.table import job
from shared.lifecycle import erased_rows, erasure
from tests import run_pass
from tests.agent import Agent
from tests.conftest import Gateway
from tests.draining import make_due
from tests.integration.dreams.conftest import load_run, model_gateway
from tests.locks import wait_until_blocked
from workers.dream import due_runs
from workers.enrichment import due_mining
from workers.passes import run_pass as passes
from workers.passes.pass_context import LeaseLost, PassContext

__all__ = ["model_gateway"]  # a fixture

Work = Callable[[Gateway], Awaitable[Any]]


@pytest.fixture
def agent(model_gateway: Gateway) -> Agent:
    return Agent(model_gateway.client, model_gateway.tenant)


async def list_orphans(gateway: Gateway) -> list[str]:
    """Return the jobs of runs that are gone."""
    runs = select(dream_run.c.id).where(dream_run.c.tenant == gateway.tenant)
    is_orphan = (job.c.tenant == gateway.tenant, job.c.kind == RecordKind.DREAM_RUN)
    statement = select(job.c.record_id).where(*is_orphan, job.c.record_id.not_in(runs))
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return list(await tx.scalars(statement))


@pytest.mark.parametrize(
    ("erased", "started", "body", "status"),
    [
        ("/v1/users/ada", "/v1/dreams", {"user_id": "ada"}, 201),
        ("/v1/agents/helper", "/v1/dreams", {"agent_id": "helper"}, 201),
        ("/v1/users/ada", "/v1/sessions/trip/mine", {}, 404),
    ],
)
async def test_a_run_that_is_started_while_its_owner_is_erased_keeps_row_and_job_or_neither(
    agent: Agent,
    model_gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    erased: str,
    started: str,
    body: dict[str, str],
    status: int,
) -> None:
    await agent.session(id="trip", user_id="ada")
    await agent.append_turn("trip", "I live in Lyon.", role="user")
    collect = erased_rows.collect
    tasks: list[asyncio.Task[httpx.Response]] = []

    async def collect_and_be_met(*arguments: Any) -> Any:
        collected = await collect(*arguments)
        tasks.append(asyncio.create_task(model_gateway.client.post(started, json=body)))
        await asyncio.wait(tasks, timeout=1)  # it has to wait for the erasure
        return collected

    monkeypatch.setattr(erased_rows, "collect", collect_and_be_met)
    await agent.request("DELETE", erased)
    [answer] = await asyncio.gather(*tasks)
    assert answer.status_code == status, answer.text
    assert await list_orphans(model_gateway) == []


async def _start_on_demand(gateway: Gateway) -> None:
    scope = Scope(gateway.tenant, "helper", "ada")
    await start.start_on_demand(gateway.resources, scope, "k", (), dry_run=False)


async def _mine(gateway: Gateway) -> None:
    await gateway.client.post("/v1/sessions/trip/mine")


async def _start_due_runs(gateway: Gateway) -> None:
    await due_runs.start_due_runs(gateway.resources)


async def _start_due_mining(gateway: Gateway) -> None:
    await due_mining.start_due_mining(gateway.resources)


@pytest.mark.parametrize(
    ("begin", "pipeline"),
    [
        (_start_on_demand, None),
        (_mine, None),
        (_start_due_runs, Pipeline.DREAM),
        (_start_due_runs, Pipeline.EVALUATION),
        (_start_due_mining, Pipeline.MINING),
    ],
)
@pytest.mark.parametrize(("subject", "id_"), [(Subject.USER, "ada"), (Subject.AGENT, "helper")])
async def test_whoever_starts_a_run_waits_for_an_erasure_before_locking_anything_that_this_deletes(
    agent: Agent, model_gateway: Gateway, begin: Work, pipeline: Pipeline | None, subject: Subject, id_: str
) -> None:
    resources, tenant = model_gateway.resources, model_gateway.tenant
    await agent.session(id="trip", agent_id="helper", user_id="ada")
    await agent.append_turn("trip", "I live in Lyon.", role="user")
    await _keep_only(model_gateway, pipeline)
    async with resources.postgres.for_tenant(tenant) as erasing:
        await removals.lock_subject(erasing, subject, id_)
        task = asyncio.ensure_future(begin(model_gateway))
        await wait_until_blocked(erasing, task)
        await dream_schedule.cancel_scopes(erasing, **{f"{subject}_id": id_})
    await task
    started = await model_gateway.client.get("/v1/dreams")
    assert len(started.json()["results"]) == (pipeline is None), "a cancelled schedule starts nothing"


async def _keep_only(gateway: Gateway, pipeline: Pipeline | None) -> None:
    """Leave of the scope's schedules only that of a pipeline, and make it due."""
    scope = Scope(gateway.tenant, "helper", "ada")
    record_ids = [dream_schedule.scope_to_record_id(scope)]
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for other in {Pipeline.DREAM, Pipeline.EVALUATION, Pipeline.MINING} - {pipeline}:
            await job_queries.cancel(tx, RecordKind.DREAM_SCOPE, record_ids, other)
    await make_due(gateway.resources)


async def test_a_pass_that_moves_on_while_its_user_is_erased_leaves_no_job_of_its_next_pass(
    model_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources, tenant = model_gateway.resources, model_gateway.tenant
    body = {"user_id": "ada", "passes": ["deduplicate", "consolidate"]}
    run_id = (await model_gateway.client.post("/v1/dreams", json=body)).json()["id"]
    advance = passes._advance_run
    tasks: list[asyncio.Task[Any]] = []

    async def advance_and_be_met(tx: Transaction, *arguments: Any) -> None:
        await advance(tx, *arguments)
        caller = Caller("k", tenant, frozenset())
        tasks.append(asyncio.create_task(erasure.erase_user(resources, caller, "ada")))
        await wait_until_blocked(tx, tasks[0])

    monkeypatch.setattr(passes, "_advance_run", advance_and_be_met)
    await run_pass.run_pass(resources, tenant, run_id, DreamPass.DEDUPLICATE)
    await asyncio.gather(*tasks)
    assert await list_orphans(model_gateway) == []
    assert (await model_gateway.client.get(f"/v1/dreams/{run_id}")).status_code == 404


async def test_a_pass_that_waits_for_an_erasure_has_locked_nothing_that_this_deletes(
    model_gateway: Gateway,
) -> None:
    """Each waited for what the other had locked: Postgres ended one of them."""
    resources, tenant = model_gateway.resources, model_gateway.tenant
    body = {"user_id": "ada", "passes": ["consolidate"]}
    run_id = (await model_gateway.client.post("/v1/dreams", json=body)).json()["id"]
    run = await load_run(resources, tenant, run_id)
    async with resources.postgres.for_tenant(tenant) as tx:
        kind = RecordKind.DREAM_RUN
        claimed = await claim.claim_one(tx, kind, run_id, DREAM_PASS, 60)
    assert claimed is not None
    context = PassContext(resources, run, claimed, DreamPass.CONSOLIDATE)
    async with resources.postgres.for_tenant(tenant) as erasing:
        await dream_schedule.cancel_runs(erasing, user_id="ada")
        saving = asyncio.ensure_future(context._save_inputs())
        await wait_until_blocked(erasing, saving)
        of_run = select(dream_pass.c.name).where(dream_pass.c.run_id == run_id)
        assert await erasing.scalar(of_run.with_for_update(skip_locked=True)) == "consolidate"
    with pytest.raises(LeaseLost):
        await saving
