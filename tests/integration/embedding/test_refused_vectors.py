"""What becomes of an embedding job when Qdrant does not take the vector."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config
from shared.foundation.stages import RecordKind
from shared.search.index import collections, points
from tests.conftest import serving
from tests.integration.sweep.house import TestStack
from tests.standins.behaviours import Status
from tests.standins.models import ModelServer

ATTEMPTS = 3


@pytest.fixture
async def house(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> AsyncIterator[TestStack]:
    """A fleet of its own that embeds, where work is tried three times."""
    settings = make_settings(
        apart=True, embedding_base_url=models.url, embedding_model="m", job_max_attempts=ATTEMPTS
    )
    async with serving(settings, tenant) as gateway:
        yield TestStack(gateway)


async def jobs(house: TestStack) -> list[tuple[str, int, bool, str | None]]:
    """Return (stage, attempts, dead, last error) of the jobs that are left on the index track."""
    rows = await house.sql(
        "SELECT stage, attempts, dead_at IS NOT NULL, last_error FROM job WHERE pipeline = 'index'"
    )
    return [(stage, attempts, dead, error) for stage, attempts, dead, error in rows]


async def has_vector(house: TestStack, memory: str) -> bool:
    """Tell whether a memory's first version has its vector in the index."""
    collection = (await house.live()).collection
    point = points.point_id(house.tenant, RecordKind.MEMORY, memory, 1)
    records = await house.resources.qdrant.client.retrieve(collection, [point], with_vectors=["dense"])
    return [isinstance(record.vector, dict) and "dense" in record.vector for record in records] == [True]


async def test_a_vector_that_qdrant_refuses_costs_attempts_until_the_job_is_dead(house: TestStack) -> None:
    """A refusal for good must not send the job round and round between two stages."""
    collection, reason = (await house.live()).collection, "qdrant refused the vectors: status 400"
    await collections.drop_collection(house.resources.qdrant, collection)
    await collections.create_collection(house.resources.qdrant, collection, 8)
    memory = await house.save("orange marmalade")
    async with asyncio.timeout(30):
        for attempt in range(1, ATTEMPTS):
            await house.settle()
            assert await jobs(house) == [("embed", attempt, False, reason)]
        await house.settle()
    assert await jobs(house) == [("embed", ATTEMPTS, True, reason)]
    async with asyncio.timeout(30):
        await house.settle()
    assert await jobs(house) == [("embed", ATTEMPTS, True, reason)], "a dead job is not tried again"
    assert (await house.client.get("/v1/status")).json()["dead"]["embedding"] == 1
    assert memory in {ref for ref, _ in await house.points()}, "its words are found all the same"


async def test_a_point_that_is_missing_is_written_again_and_gets_its_vector(
    house: TestStack, models: ModelServer
) -> None:
    models.embedding_default = Status(500)
    lost, kept = await house.save("orange marmalade"), await house.save("bitter lemons")
    await house.settle()
    assert {stage for stage, *_ in await jobs(house)} == {"embed"}
    await house.lose(RecordKind.MEMORY, [lost])
    models.reset()
    async with asyncio.timeout(30):
        await house.settle()
    assert await jobs(house) == []
    assert [await has_vector(house, memory) for memory in (lost, kept)] == [True, True]
