"""IX2: a building generation is promoted only when search would lose no record."""

import pytest
from sqlalchemy import func, update

from shared.foundation.stages import EMBED, INDEX
from shared.jobs import claim as job_claim
from shared.jobs import dead_jobs, index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.jobs.table import job as job_table
from shared.search.index import generations
from shared.search.index.generations import Generation
from tests.integration.jobs.conftest import JobQueue


@pytest.fixture
async def pair(queue: JobQueue) -> tuple[Generation, Generation]:
    """The live generation without a model, and a building one with a model."""
    return await queue.create_generation(), await queue.create_generation("model")


async def count_missing(queue: JobQueue, pair: tuple[Generation, Generation]) -> int:
    live, building = pair
    async with queue.resources.postgres.across_tenants() as tx:
        return await generations.count_missing(tx, building, live)


async def confirm(queue: JobQueue, jobs: list[Job]) -> None:
    async with queue.resources.postgres.across_tenants() as tx:
        await index_jobs.confirm_indexed(tx, jobs)


async def test_nothing_is_missing_when_no_job_is_left(
    queue: JobQueue, pair: tuple[Generation, Generation]
) -> None:
    assert await count_missing(queue, pair) == 0


async def test_backfilled_records_are_missing_until_their_keywords_and_vectors_are_written(
    queue: JobQueue, pair: tuple[Generation, Generation]
) -> None:
    await queue.add_index("a", "m1", generation=pair[1].id)
    await queue.add_index("b", "m2", generation=pair[1].id)
    assert await count_missing(queue, pair) == 2
    jobs = await queue.claim(stage=INDEX)
    assert await count_missing(queue, pair) == 2
    await confirm(queue, jobs)
    assert {row["stage"] for row in await queue.job_rows()} == {"embed"}
    assert await count_missing(queue, pair) == 2
    async with queue.resources.postgres.across_tenants() as tx:
        await tx.execute(update(job_table).values(run_at=func.now()))
        await job_queries.complete(tx, await job_claim.claim_batch(tx, EMBED, 10, 60, 5))
    assert await count_missing(queue, pair) == 0


async def test_a_new_record_that_neither_generation_has_is_not_missing(
    queue: JobQueue, pair: tuple[Generation, Generation]
) -> None:
    await queue.add_index("a", "m")
    assert await count_missing(queue, pair) == 0


async def test_a_new_record_that_only_the_live_generation_has_is_missing(
    queue: JobQueue, pair: tuple[Generation, Generation]
) -> None:
    jobs = await queue.add_index("a", "m")
    await confirm(queue, [job for job in jobs if job.generation == pair[0].id])
    assert await count_missing(queue, pair) == 1
    await confirm(queue, jobs)
    assert await count_missing(queue, pair) == 0, "both have its keywords; its vector may follow"


async def test_records_of_two_tenants_with_the_same_id_are_different_records(
    queue: JobQueue, pair: tuple[Generation, Generation]
) -> None:
    tenant_jobs, other_jobs = await queue.add_index("a", "m"), await queue.add_index("b", "m")
    await confirm(queue, [job for job in tenant_jobs if job.generation == pair[0].id])
    assert await count_missing(queue, pair) == 1
    await confirm(queue, other_jobs)
    assert await count_missing(queue, pair) == 1


async def test_a_dead_job_is_not_missing(queue: JobQueue, pair: tuple[Generation, Generation]) -> None:
    """A record that cannot be indexed must not prevent the promotion for ever."""
    (job,) = await queue.add_index("a", "poison", generation=pair[1].id)
    async with queue.resources.postgres.across_tenants() as tx:
        await dead_jobs.mark_dead(tx, job, "poison")
    assert await count_missing(queue, pair) == 0


async def test_saving_a_record_during_its_backfill_ends_the_backfill(
    queue: JobQueue, pair: tuple[Generation, Generation]
) -> None:
    await queue.add_index("a", "m", generation=pair[1].id)
    await queue.add_index("a", "m", version=2)
    assert await count_missing(queue, pair) == 0
