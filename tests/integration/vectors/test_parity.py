"""Both servers give the same scores, so that results of tuning on one machine hold in production."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from qdrant_client import AsyncQdrantClient, models

from tests.integration.vectors.conftest import BINARY, LOCAL, SIZE, Servers, connected, create, point_id

pytestmark = pytest.mark.asyncio

POINTS, TERMS = 500, 60


@pytest_asyncio.fixture
async def both(servers: Servers) -> AsyncIterator[tuple[AsyncQdrantClient, AsyncQdrantClient]]:
    """Return clients of both servers, filled with the same points."""
    async with connected(servers.url(BINARY)) as real, connected(servers.url(LOCAL)) as local:
        await asyncio.gather(*(fill(client) for client in (real, local)))
        yield real, local


async def fill(client: AsyncQdrantClient) -> None:
    rng = random.Random(1)
    await create(client, "parity")
    points = [
        models.PointStruct(
            id=point_id(number),
            vector={"dense": dense(rng), "bm25": text(rng, 12)},
            payload={"tenant": rng.choice("abc"), "n": number},
        )
        for number in range(POINTS)
    ]
    await client.upsert("parity", points)
    await client.delete("parity", [point_id(number) for number in range(0, POINTS, 7)])


def dense(rng: random.Random) -> list[float]:
    return [rng.gauss(0, 1) for _ in range(SIZE)]


def text(rng: random.Random, length: int) -> models.SparseVector:
    terms = sorted({int(TERMS * rng.random() ** 3) for _ in range(length)})
    return models.SparseVector(indices=terms, values=[round(rng.uniform(0.5, 2.0), 3) for _ in terms])


async def test_both_servers_give_the_same_scores(both: tuple[AsyncQdrantClient, AsyncQdrantClient]) -> None:
    rng = random.Random(2)
    searches = []
    for number in range(40):
        tenant = models.FieldCondition(key="tenant", match=models.MatchValue(value="abc"[number % 3]))
        point_filter = models.Filter(must=[tenant]) if number % 2 else None
        for query, using in ((dense(rng), "dense"), (text(rng, 5), "bm25")):
            searches.append(models.QueryRequest(query=query, using=using, filter=point_filter, limit=POINTS))
    real, local = [await client.query_batch_points("parity", searches) for client in both]
    for real_result, local_result in zip(real, local, strict=True):
        assert len(local_result.points) > 10
        assert {hit.id: hit.score for hit in local_result.points} == pytest.approx(
            {hit.id: hit.score for hit in real_result.points}, abs=1e-4
        )
