"""The reason for a delayed or dead job has its own column, so no program reads the text for people."""

import asyncio
from typing import Any

from sqlalchemy import func, select, update

from shared.foundation.stages import ENRICH, INDEX, ReasonCode
from shared.infra.postgres import seconds
from shared.jobs import dead_jobs, index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.table import job as job_table
from tests.integration.jobs.conftest import JobQueue


async def delay(queue: JobQueue, text: str, reason_code: ReasonCode) -> None:
    """Claim the only due job and reschedule it for this reason."""
    (job,) = await queue.claim()
    async with queue.resources.postgres.across_tenants() as tx:
        await job_queries.reschedule(tx, job, text, 30, reason_code=reason_code, refund=True)


async def run_now(queue: JobQueue, tenant: str = "a") -> int:
    async with queue.resources.postgres.for_tenant(tenant) as tx:
        return await job_queries.run_delayed_now(tx, ENRICH, ReasonCode.OVER_BUDGET)


async def reasons(queue: JobQueue) -> list[tuple[str | None, str | None]]:
    return [(row["last_error"], row["reason_code"]) for row in await queue.job_rows()]


async def test_delayed_jobs_are_chosen_by_their_code_whatever_their_text_says(queue: JobQueue) -> None:
    await queue.add("a", "waits for a budget")
    await delay(queue, "the budget of the day is used up", ReasonCode.OVER_BUDGET)
    await queue.add("a", "waits for the model")
    await delay(queue, "over budget, says the model's server", ReasonCode.UNAVAILABLE)
    assert await run_now(queue) == 1
    assert [job.record_id for job in await queue.claim()] == ["waits for a budget"]


async def test_another_tenants_jobs_stay_delayed(queue: JobQueue) -> None:
    await queue.add("b", "m")
    await delay(queue, "over budget", ReasonCode.OVER_BUDGET)
    assert await run_now(queue, "a") == 0
    assert await queue.claim() == []


async def test_a_job_that_was_claimed_again_is_not_changed(queue: JobQueue) -> None:
    await queue.add("a", "m")
    await delay(queue, "over budget", ReasonCode.OVER_BUDGET)
    await queue.end_leases()
    await queue.claim()
    assert await run_now(queue) == 0


async def test_what_a_model_refused_is_due_when_it_answers_again(queue: JobQueue) -> None:
    """The name of a job is what keeps it from being chosen, and none of the others does."""
    differences: dict[str, dict[str, Any]] = {
        "waiting": {},
        "locked": {},
        "stage": {"stage": "embed"},
        "backfill": {"backfill": True},
        "dead_at": {"dead_at": func.now()},
        "lease_token": {"lease_token": func.gen_random_uuid()},
        "reason_code": {"reason_code": ReasonCode.OVER_BUDGET},
    }
    await queue.add("a", *differences)
    refused = {"reason_code": ReasonCode.KEY_REFUSED, "run_at": func.now() + seconds(60)}
    async with queue.resources.postgres.across_tenants() as tx:
        for name, values in differences.items():
            is_named = job_table.c.record_id == name
            await tx.execute(update(job_table).where(is_named).values(refused | values))

    async with (
        queue.resources.postgres.across_tenants() as holder,
        queue.resources.postgres.across_tenants() as tx,
        asyncio.timeout(10),
    ):
        is_locked = job_table.c.record_id == "locked"
        await holder.execute(select(job_table.c.id).where(is_locked).with_for_update())
        assert await job_queries.run_refused_now(tx, ENRICH, 10) == 1
        assert await job_queries.run_refused_now(tx, ENRICH, 0) == 0

    assert [job.record_id for job in await queue.claim()] == ["waiting"]


async def test_a_job_that_is_due_at_this_very_time_is_not_made_due_again(queue: JobQueue) -> None:
    await queue.add("a", "m")
    for reason_code in (ReasonCode.OVER_BUDGET, ReasonCode.KEY_REFUSED):
        async with queue.resources.postgres.for_tenant("a") as tx:
            due_now = {"reason_code": reason_code, "run_at": func.now()}
            await tx.execute(update(job_table).values(due_now))
            assert await job_queries.run_delayed_now(tx, ENRICH, reason_code) == 0
            assert await job_queries.run_refused_now(tx, ENRICH, 10) == 0


async def test_released_and_dead_jobs_have_the_codes_released_and_exhausted(queue: JobQueue) -> None:
    await queue.add("a", "m")
    async with queue.resources.postgres.across_tenants() as tx:
        await job_queries.release(tx, await queue.claim())
    assert await reasons(queue) == [("released by its worker", "released")]
    (job,) = await queue.claim()
    async with queue.resources.postgres.across_tenants() as tx:
        await dead_jobs.mark_dead(tx, job, "it bites")
    assert await reasons(queue) == [("it bites", "exhausted")]


async def release_index_job(queue: JobQueue) -> None:
    async with queue.resources.postgres.across_tenants() as tx:
        await job_queries.release(tx, await queue.claim(stage=INDEX))
    assert await reasons(queue) == [("released by its worker", "released")]


async def test_a_newer_version_to_index_has_no_reason(queue: JobQueue) -> None:
    await queue.create_generation()
    await queue.add_index("a", "m")
    await release_index_job(queue)
    await queue.add_index("a", "m", version=2)
    assert await reasons(queue) == [(None, None)]


async def test_a_job_in_the_next_stage_has_no_reason(queue: JobQueue) -> None:
    await queue.create_generation("model")
    await queue.add_index("a", "m")
    await release_index_job(queue)
    async with queue.resources.postgres.across_tenants() as tx:
        await index_jobs.confirm_indexed(tx, await queue.claim(stage=INDEX))
    assert await reasons(queue) == [(None, None)]


async def test_a_newer_version_to_enrich_has_no_reason(queue: JobQueue) -> None:
    await queue.add("a", "m")
    await delay(queue, "over budget", ReasonCode.OVER_BUDGET)
    await queue.add("a", "m", version=2)
    assert await reasons(queue) == [(None, None)]
