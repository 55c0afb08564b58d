"""An embedding job whose vector Qdrant refuses, or whose point is missing."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config
from shared.foundation.stages import RecordKind
from shared.search.index import collections, points
from tests.conftest import running_gateway
from tests.integration.sweep.stack import TestStack
from tests.standins.behaviours import Status
from tests.standins.models import ModelServer

ATTEMPTS = 3


@pytest.fixture
async def stack(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> AsyncIterator[TestStack]:
    """Start a separate installation that embeds, with three attempts for each job."""
    settings = make_settings(
        apart=True, embedding_base_url=models.url, embedding_model="m", job_max_attempts=ATTEMPTS
    )
    async with running_gateway(settings, tenant) as gateway:
        yield TestStack(gateway)


async def jobs(stack: TestStack) -> list[tuple[str, int, bool, str | None]]:
    """Return (stage, attempts, dead, last error) of the remaining jobs of the index pipeline."""
    rows = await stack.sql(
        "SELECT stage, attempts, dead_at IS NOT NULL, last_error FROM job WHERE pipeline = 'index'"
    )
    return [(stage, attempts, dead, error) for stage, attempts, dead, error in rows]


async def has_vector(stack: TestStack, memory: str) -> bool:
    """Return whether the point of a memory's first version has a vector."""
    collection = (await stack.live_generation()).collection
    point = points.point_id(stack.tenant, RecordKind.MEMORY, memory, 1)
    body = {"ids": [point], "with_vector": ["dense"]}
    records = await stack.resources.qdrant.call("POST", f"collections/{collection}/points", body)
    return ["dense" in record.get("vector", {}) for record in records] == [True]


async def test_a_vector_that_qdrant_refuses_costs_attempts_until_the_job_is_dead(stack: TestStack) -> None:
    """A permanent refusal must not send the job back and forth between two stages."""
    collection, reason = (await stack.live_generation()).collection, "qdrant refused the vectors: status 400"
    await collections.drop_collection(stack.resources.qdrant, collection)
    await collections.create_collection(stack.resources.qdrant, collection, 8)
    memory = await stack.save("orange marmalade")
    async with asyncio.timeout(30):
        for attempt in range(1, ATTEMPTS):
            await stack.process_all()
            assert await jobs(stack) == [("embed", attempt, False, reason)]
        await stack.process_all()
    assert await jobs(stack) == [("embed", ATTEMPTS, True, reason)]
    async with asyncio.timeout(30):
        await stack.process_all()
    assert await jobs(stack) == [("embed", ATTEMPTS, True, reason)], "a dead job is not tried again"
    assert (await stack.client.get("/v1/status")).json()["dead"]["embedding"] == 1
    assert memory in {ref for ref, _ in await stack.points()}, "it is found by its keywords all the same"


async def test_a_missing_point_is_written_again_and_gets_its_vector(
    stack: TestStack, models: ModelServer
) -> None:
    models.embedding_default = Status(500)
    memory_without_point, other_memory = (
        await stack.save("orange marmalade"),
        await stack.save("bitter lemons"),
    )
    await stack.process_all()
    assert {stage for stage, *_ in await jobs(stack)} == {"embed"}
    await stack.delete_points(RecordKind.MEMORY, [memory_without_point])
    models.reset()
    async with asyncio.timeout(30):
        await stack.process_all()
    assert await jobs(stack) == []
    assert [await has_vector(stack, memory) for memory in (memory_without_point, other_memory)] == [
        True,
        True,
    ]
