"""MO2: a pass whose model refuses every request waits, and reads, tries and fails nothing meanwhile."""

from collections.abc import AsyncIterator, Callable

import pytest
from pydantic import SecretStr
from sqlalchemy import func, update

from shared.foundation import config
from shared.foundation.stages import DreamPass
from shared.jobs.table import model_pause
from tests import run_pass
from tests.conftest import Gateway, running_gateway
from tests.draining import make_due
from tests.integration.dreams.conftest import execute_run, load_run, merge_reply, save_memories
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer
from workers.enrichment import enrich
from workers.sweep.jobs import dispatch_due_jobs


@pytest.fixture
async def refused(
    make_settings: Callable[..., config.Settings], database: dict[str, str], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    settings = make_settings(**database, llm_base_url=models.url, llm_model="m", job_max_attempts=2)
    async with running_gateway(settings, tenant) as gateway:
        yield gateway


@pytest.mark.parametrize("status", [401, 403, 404, 400, 429, 503])
async def test_a_pass_waits_until_its_model_answers(
    refused: Gateway, models: ModelServer, status: int
) -> None:
    ids = await save_memories(refused)
    models.chat_default = Status(status)
    response = await refused.client.post("/v1/dreams", json={"passes": ["consolidate"]})
    run_id = response.json()["id"]
    for _ in range(5):
        await make_due(refused.resources)
        result = await run_pass.run_pass(refused.resources, refused.tenant, run_id, DreamPass.CONSOLIDATE)
        assert result.startswith("rescheduled"), result
    run = await load_run(refused.resources, refused.tenant, run_id)
    assert run.next_pass is not None
    if status < 429:
        assert len(models.chat_calls) <= 2, "refused once, with a schema and perhaps without it; then paused"
        paused = (await refused.client.get("/v1/status")).json()["paused"]
        assert [row["stage"] for row in paused] == ["dream"]

    models.chat_default = merge_reply(ids)
    async with refused.resources.postgres.across_tenants() as tx:
        await tx.execute(update(model_pause).values(next_probe_at=func.now()))
    await execute_run(refused.resources, refused.tenant, run_id)
    ended = (await refused.client.get(f"/v1/dreams/{run_id}")).json()
    assert ended["passes"][0]["applied"] == {"created": 1, "archived": 3}
    assert (await refused.client.get("/v1/status")).json()["paused"] == []


async def refuse_run(gateway: Gateway, models: ModelServer, status: int = 401) -> tuple[list[str], str]:
    """Run a pass that is refused. Return its memories and the run; the pass waits for the next probe."""
    ids = await save_memories(gateway)
    models.chat_default = Status(status)
    run_id = (await gateway.client.post("/v1/dreams", json={"passes": ["consolidate"]})).json()["id"]
    result = await run_pass.run_pass(gateway.resources, gateway.tenant, run_id, DreamPass.CONSOLIDATE)
    assert result.startswith("rescheduled"), result
    return ids, run_id


async def is_due(gateway: Gateway) -> bool:
    """Dispatch as beat does every two seconds, and tell whether the pass is due."""
    return bool((await dispatch_due_jobs(gateway.resources)).get("dream_pass"))


async def test_a_refused_pass_goes_on_as_soon_as_the_model_answers_another_stage(
    refused: Gateway, models: ModelServer
) -> None:
    ids, run_id = await refuse_run(refused, models)
    assert not await is_due(refused), "it waits for the probe"
    models.chat_default = Reply("[]")
    await refused.client.post("/v1/memories", json={"content": "The pier in Husum is closed."})
    await enrich.enrich_pending(refused.resources)
    assert (await refused.client.get("/v1/status")).json()["paused"] == []
    assert await is_due(refused)
    models.chat_default = merge_reply(ids)
    await run_pass.run_pass(refused.resources, refused.tenant, run_id, DreamPass.CONSOLIDATE)
    assert (await refused.client.get(f"/v1/dreams/{run_id}")).json()["passes"][0]["state"] == "done"


async def test_a_refused_pass_is_tried_at_once_with_other_settings(
    refused: Gateway, models: ModelServer, make_settings: Callable[..., config.Settings], tenant: str
) -> None:
    await refuse_run(refused, models)
    settings = refused.resources.settings.model_copy(update={"llm_api_key": SecretStr("another")})
    async with running_gateway(settings, tenant) as restarted:
        assert await is_due(restarted)


async def test_what_one_stage_is_refused_is_not_asked_again_because_another_is_answered(
    refused: Gateway, models: ModelServer
) -> None:
    await refuse_run(refused, models, 403)
    models.chat_default = Reply("[]")
    await refused.client.post("/v1/memories", json={"content": "The pier in Husum is closed."})
    await enrich.enrich_pending(refused.resources)
    assert [row["stage"] for row in (await refused.client.get("/v1/status")).json()["paused"]] == ["dream"]
    assert not await is_due(refused)
