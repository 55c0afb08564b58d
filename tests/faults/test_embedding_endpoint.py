"""An invalid embedding never reaches the index; the memory is kept and embedded later."""

from collections.abc import Callable
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient
from qdrant_client.models import Record

from tests.faults.history import History, eventually
from tests.faults.processes import Fleet
from tests.standins import behaviours
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

# One of each kind; `integration/embedding/test_vectors.py` has all the shapes.
BAD: dict[str, Behaviour] = {
    "another dimension": behaviours.WrongDimension(),
    "not a number": behaviours.NotANumber("NaN"),
    "not JSON": behaviours.Garbage(),
    "500": behaviours.Status(500),
    "silence": behaviours.Hang(),
}


@pytest.fixture
async def embedding(
    make_fleet: Callable[..., Fleet], remember: Callable[..., Any], models: ModelServer
) -> tuple[Fleet, History]:
    """A fleet whose embedding endpoint works at the start."""
    fleet = make_fleet(
        embedding_base_url=models.url, embedding_model="e", query_embedding_timeout=1, embedding_timeout=1
    )
    fleet.serve()
    for role in ("work", "beat"):
        fleet.start(role)
    return fleet, await remember(fleet)


async def test_bad_vectors_never_reach_the_index_and_good_ones_follow(
    embedding: tuple[Fleet, History], models: ModelServer
) -> None:
    fleet, history = embedding
    await history.save()
    await history.quiet(within=20)
    for name, behaviour in BAD.items():
        models.embedding_default = behaviour
        await history.save_many(3)
        seen = len(models.embedding_calls)
        await _wait_for_retries(models, seen, name)
        assert (await history.status())["pending"]["embedding"] == 3, name
        assert [_has_vector(point) for point in await _points(fleet)].count(False) == 3, name
        save = history.saves[-1]
        assert save.id in await history.search_ids(save.word, stages=["bm25"], degraded=["dense"]), name
        models.embedding_default = behaviours.Vectors()
        models.release()
        await history.quiet(within=20)
        assert all(_has_vector(point) for point in await _points(fleet)), name
    assert len(await _points(fleet)) == len(history.saves)
    await history.check("")


async def test_a_query_goes_on_by_keywords_while_the_endpoint_is_down(
    embedding: tuple[Fleet, History], models: ModelServer
) -> None:
    _, history = embedding
    save = await history.save()
    await history.quiet(within=20)
    models.stop()
    assert save.id in await history.search_ids(save.word, stages=["bm25"], degraded=["dense"])
    models.start()

    async def both() -> bool:
        answer = await history.client.post("/v1/memories/search", json={"query": save.word})
        return bool(answer.json()["stages"] == ["bm25", "dense"] and answer.json()["degraded"] == [])

    await eventually(both, 10, "search by both channels")


async def _wait_for_retries(models: ModelServer, seen: int, name: str) -> None:
    async def asked() -> bool:
        return len(models.embedding_calls) >= seen + 3

    await eventually(asked, 20, f"{name}: three more tries")


async def _points(fleet: Fleet) -> list[Record]:
    qdrant = AsyncQdrantClient(url=fleet.settings.qdrant_url, timeout=5, check_compatibility=False)
    try:
        alias = f"{fleet.settings.prefix}_memory"
        return (await qdrant.scroll(alias, limit=1000, with_vectors=["dense"]))[0]
    finally:
        await qdrant.close()


def _has_vector(point: Record) -> bool:
    return isinstance(point.vector, dict) and "dense" in point.vector
