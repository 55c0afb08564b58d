"""IX2: a building generation takes over only when it would lose nothing that the live one finds."""

import pytest
from sqlalchemy import func, update

from shared.foundation.stages import EMBED, INDEX
from shared.jobs import claim as job_claim
from shared.jobs import dead_jobs, index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.jobs.table import job
from shared.search.index import generations
from shared.search.index.generations import Generation
from tests.integration.queue.conftest import Queue


@pytest.fixture
async def pair(queue: Queue) -> tuple[Generation, Generation]:
    """The generation that is read, and one with a model that is being built."""
    return await queue.begin(), await queue.begin("model")


async def behind(queue: Queue, pair: tuple[Generation, Generation]) -> int:
    live, building = pair
    async with queue.resources.postgres.across_tenants() as connection:
        return await generations.count_missing(connection, building, live)


async def confirm(queue: Queue, claims: list[Job]) -> None:
    async with queue.resources.postgres.across_tenants() as connection:
        await index_jobs.confirm_indexed(connection, claims)


async def test_nothing_is_missing_when_no_job_is_left(queue: Queue, pair: tuple[Generation, Generation]) -> None:
    assert await behind(queue, pair) == 0


async def test_backfilled_records_are_missing_until_their_keywords_and_vectors_are_written(
    queue: Queue, pair: tuple[Generation, Generation]
) -> None:
    await queue.add_index("a", "m1", generation=pair[1].id)
    await queue.add_index("b", "m2", generation=pair[1].id)
    assert await behind(queue, pair) == 2
    claims = await queue.claim(stage=INDEX)
    assert await behind(queue, pair) == 2
    await confirm(queue, claims)
    assert {row["stage"] for row in await queue.rows()} == {"embed"}
    assert await behind(queue, pair) == 2
    async with queue.resources.postgres.across_tenants() as connection:
        await connection.execute(update(job).values(run_at=func.now()))
        await job_queries.complete(connection, await job_claim.claim_batch(connection, EMBED, 10, 60, 5))
    assert await behind(queue, pair) == 0


async def test_a_new_record_that_neither_generation_has_is_not_missing(
    queue: Queue, pair: tuple[Generation, Generation]
) -> None:
    await queue.add_index("a", "m")
    assert await behind(queue, pair) == 0


async def test_a_new_record_that_only_the_live_generation_has_is_missing(
    queue: Queue, pair: tuple[Generation, Generation]
) -> None:
    claims = await queue.add_index("a", "m")
    await confirm(queue, [claim for claim in claims if claim.generation == pair[0].id])
    assert await behind(queue, pair) == 1
    await confirm(queue, claims)
    assert await behind(queue, pair) == 0, "it is found by keyword in both; its vector may follow"


async def test_records_of_two_tenants_with_the_same_id_are_different_records(
    queue: Queue, pair: tuple[Generation, Generation]
) -> None:
    mine, others = await queue.add_index("a", "m"), await queue.add_index("b", "m")
    await confirm(queue, [claim for claim in mine if claim.generation == pair[0].id])
    assert await behind(queue, pair) == 1
    await confirm(queue, others)
    assert await behind(queue, pair) == 1


async def test_a_dead_job_is_not_missing(
    queue: Queue, pair: tuple[Generation, Generation]
) -> None:
    """F14: a poison record must not keep an old model alive for ever."""
    (claim,) = await queue.add_index("a", "poison", generation=pair[1].id)
    async with queue.resources.postgres.across_tenants() as connection:
        await dead_jobs.mark_dead(connection, claim, "poison")
    assert await behind(queue, pair) == 0


async def test_saving_a_record_during_its_backfill_ends_the_backfill(
    queue: Queue, pair: tuple[Generation, Generation]
) -> None:
    await queue.add_index("a", "m", generation=pair[1].id)
    await queue.add_index("a", "m", version=2)
    assert await behind(queue, pair) == 0
