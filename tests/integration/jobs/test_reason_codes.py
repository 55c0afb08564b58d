"""Why a job is delayed or dead stands in a column of its own; no decision reads the text for people."""

from collections.abc import Callable

import pytest
from sqlalchemy import select

from shared.foundation import config
from shared.foundation.stages import ENRICH, INDEX, ReasonCode
from shared.jobs import dead_jobs, index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.table import job
from tests.conftest import serving
from tests.draining import drain
from tests.integration.queue.conftest import Queue
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour


async def delay(queue: Queue, text: str, reason_code: ReasonCode) -> None:
    """Claim the only due job and reschedule it for this reason."""
    (claim,) = await queue.claim()
    async with queue.resources.postgres.across_tenants() as connection:
        await job_queries.reschedule(connection, claim, text, 30, reason_code=reason_code, refund=True)


async def bring_forward(queue: Queue, tenant: str = "a") -> int:
    async with queue.resources.postgres.for_tenant(tenant) as connection:
        return await job_queries.run_delayed_now(connection, tenant, ENRICH, ReasonCode.OVER_BUDGET)


async def reason_of_all(queue: Queue) -> list[tuple[str | None, str | None]]:
    return [(row["last_error"], row["reason_code"]) for row in await queue.rows()]


async def test_delayed_jobs_are_chosen_by_their_code_whatever_their_text_says(queue: Queue) -> None:
    await queue.add("a", "waits for a budget")
    await delay(queue, "the budget of the day is used up", ReasonCode.OVER_BUDGET)
    await queue.add("a", "waits for the model")
    await delay(queue, "over budget, says the model's server", ReasonCode.UNAVAILABLE)
    assert await bring_forward(queue) == 1
    assert [claim.record_id for claim in await queue.claim()] == ["waits for a budget"]


async def test_another_tenants_jobs_stay_delayed(queue: Queue) -> None:
    await queue.add("b", "m")
    await delay(queue, "over budget", ReasonCode.OVER_BUDGET)
    assert await bring_forward(queue, "a") == 0
    assert await queue.claim() == []


async def test_a_job_that_was_claimed_again_is_not_changed(queue: Queue) -> None:
    await queue.add("a", "m")
    await delay(queue, "over budget", ReasonCode.OVER_BUDGET)
    await queue.let_leases_end()
    await queue.claim()
    assert await bring_forward(queue) == 0


async def test_released_and_dead_jobs_have_the_codes_released_and_exhausted(queue: Queue) -> None:
    await queue.add("a", "m")
    async with queue.resources.postgres.across_tenants() as connection:
        await job_queries.release(connection, await queue.claim())
    assert await reason_of_all(queue) == [("released by its worker", "released")]
    (claim,) = await queue.claim()
    async with queue.resources.postgres.across_tenants() as connection:
        await dead_jobs.mark_dead(connection, claim, "it bites")
    assert await reason_of_all(queue) == [("it bites", "exhausted")]


async def release_index_job(queue: Queue) -> None:
    async with queue.resources.postgres.across_tenants() as connection:
        await job_queries.release(connection, await queue.claim(stage=INDEX))
    assert await reason_of_all(queue) == [("released by its worker", "released")]


async def test_a_newer_version_to_index_has_no_reason(queue: Queue) -> None:
    await queue.begin()
    await queue.add_index("a", "m")
    await release_index_job(queue)
    await queue.add_index("a", "m", version=2)
    assert await reason_of_all(queue) == [(None, None)]


async def test_a_job_in_the_next_stage_has_no_reason(queue: Queue) -> None:
    await queue.begin("model")
    await queue.add_index("a", "m")
    await release_index_job(queue)
    async with queue.resources.postgres.across_tenants() as connection:
        await index_jobs.confirm_indexed(connection, await queue.claim(stage=INDEX))
    assert await reason_of_all(queue) == [(None, None)]


async def test_a_newer_version_to_enrich_has_no_reason(queue: Queue) -> None:
    await queue.add("a", "m")
    await delay(queue, "over budget", ReasonCode.OVER_BUDGET)
    await queue.add("a", "m", version=2)
    assert await reason_of_all(queue) == [(None, None)]


@pytest.mark.parametrize(
    ("answer", "reason_code"), [(Status(503), "unavailable"), (Reply("not what was asked"), "invalid_reply")]
)
async def test_an_unavailable_model_and_an_invalid_reply_have_different_codes(
    make_settings: Callable[..., config.Settings],
    models: ModelServer,
    tenant: str,
    answer: Behaviour,
    reason_code: str,
) -> None:
    models.chat_default = answer
    settings = make_settings(apart=True, llm_base_url=models.url, llm_model="m", job_backoff=60)
    async with serving(settings, tenant) as gateway:
        saved = await gateway.client.post("/v1/memories", json={"content": "Ada lives in Lyon."})
        assert saved.status_code == 201, saved.text
        await drain(gateway.resources)
        async with gateway.resources.postgres.for_tenant(tenant) as connection:
            statement = select(job.c.reason_code).where(job.c.tenant == tenant, job.c.stage == ENRICH.name)
            assert (await connection.scalars(statement)).all() == [reason_code]
