"""IX2: a changed model or `loci reindex` builds a new generation while searches and saves go on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from sqlalchemy import text

from shared import config
from shared.index import points
from shared.reindex import rebuild
from shared.stages import Kind
from tests.conftest import serving
from tests.draining import drain, make_due
from tests.integration.sweep.house import House
from tests.standins.behaviours import Status
from tests.standins.models import ModelServer


@pytest.fixture
def plain(make_settings: Callable[..., config.Settings]) -> config.Settings:
    """An installation without any model."""
    return make_settings(apart=True)


@asynccontextmanager
async def opened(settings: config.Settings, tenant: str, **changes: object) -> AsyncIterator[House]:
    """Start the installation, with what has changed in its settings."""
    async with serving(settings.model_copy(update=changes), tenant) as gateway:
        yield House(gateway)


def embedding(models: ModelServer, model: str = "m") -> dict[str, object]:
    return {"embedding_base_url": models.url, "embedding_model": model}


async def search(house: House, query: str = "marmalade") -> dict[str, list[str]]:
    answer = await house.client.post("/v1/memories/search", json={"query": query})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return {
        "ids": [one["id"] for one in told["results"]],
        "stages": told["stages"],
        "degraded": told["degraded"],
    }


async def retire_long_ago(house: House) -> None:
    async with house.resources.postgres.fleet() as connection:
        age = rebuild.RETIRED_FOR + timedelta(seconds=1)
        moved = text("UPDATE index_generation SET retired_at = now() - CAST(:age AS interval)")
        await connection.execute(moved, {"age": age})


async def states(house: House) -> list[tuple[str, str | None]]:
    return [(one.state, one.model) for one in await house.generations()]


async def test_configuring_a_model_later_makes_old_rows_due_and_then_takes_over(
    plain: config.Settings, tenant: str, models: ModelServer
) -> None:
    """IX4."""
    async with opened(plain, tenant) as house:
        old = await house.save("orange marmalade")
        assert (await house.client.get("/v1/status")).json()["pending"]["embedding"] == 0
    async with opened(plain, tenant, **embedding(models)) as house:
        assert await states(house) == [("live", None), ("building", "m")]
        assert await search(house) == {"ids": [old], "stages": ["bm25"], "degraded": ["dense"]}
        assert await rebuild.advance(house.resources) == []
        await house.settle()
        assert await states(house) == [("retiring", None), ("live", "m")]
    async with opened(plain, tenant, **embedding(models)) as house:
        assert await search(house) == {"ids": [old], "stages": ["bm25", "dense"], "degraded": []}
        assert (await house.sweep()).generations_begun == 0


async def test_the_sweep_begins_what_a_start_could_not(
    plain: config.Settings, tenant: str, models: ModelServer
) -> None:
    async with opened(plain, tenant):
        pass
    models.stop()
    async with opened(plain, tenant, **embedding(models)) as house:
        assert await states(house) == [("live", None)]
        assert (await house.sweep()).generations_begun == 0
        models.start()
        assert (await house.sweep()).generations_begun == 3
        assert await house.repairs() == {"generations_begun": 3}
        assert (await house.sweep()).generations_begun == 0
        await house.settle()
        assert await states(house) == [("retiring", None), ("live", "m")]


async def test_nothing_is_promoted_while_anything_is_behind(
    plain: config.Settings, tenant: str, models: ModelServer
) -> None:
    async with opened(plain, tenant) as house:
        await house.save("orange marmalade")
    models.embedding_default = Status(500)
    async with opened(plain, tenant, **embedding(models) | {"embedding_dimension": 64}) as house:
        await house.resources.writer.close()
        await drain(house.resources)
        assert await states(house) == [("live", None), ("building", "m")]
        models.reset()
        await house.settle()
        assert await states(house) == [("retiring", None), ("live", "m")]


async def test_what_is_saved_changed_and_deleted_meanwhile_is_right_in_every_generation(
    plain: config.Settings, tenant: str
) -> None:
    async with opened(plain, tenant) as house:
        changed, deleted, kept = [await house.save(f"marmalade {name}") for name in ("one", "two", "three")]
        await rebuild.reindex(house.resources, [Kind.MEMORY])
        await rebuild.create_collections(house.resources)
        fresh = await house.save("fresh marmalade")
        await house.client.patch(f"/v1/memories/{changed}", json={"content": "marmalade, changed"})
        await house.client.delete(f"/v1/memories/{deleted}")
        live, building = await house.generations()
        right = {(changed, 2), (kept, 1), (fresh, 1)}
        assert await house.points(generation=live) == right
        assert {(changed, 2), (fresh, 1)} <= await house.points(generation=building)
        await house.settle()
        assert await house.points(generation=building) == right
        assert (await house.live()).id == building.id
        later = await house.save("marmalade after the swap")
        assert (later, 1) in await house.points(generation=live), "a retiring one is written a little longer"
        assert (later, 1) in await house.points(generation=building)


async def test_a_retired_generation_is_dropped_when_nobody_can_be_reading_it(
    plain: config.Settings, tenant: str
) -> None:
    async with opened(plain, tenant) as house:
        entry = await house.save("marmalade")
        await rebuild.reindex(house.resources, [Kind.MEMORY])
        await rebuild.create_collections(house.resources)
        await house.settle()
        old, new = await house.generations()
        await rebuild.advance(house.resources)
        assert await house.resources.qdrant.client.collection_exists(old.collection)
        await retire_long_ago(house)
        await rebuild.advance(house.resources)
        assert not await house.resources.qdrant.client.collection_exists(old.collection)
        assert [one.id for one in await house.generations()] == [new.id]
        assert await house.sql("SELECT 1 FROM work WHERE generation = :id", id=old.id) == []
        assert (await search(house))["ids"] == [entry]


async def test_a_retired_collection_that_is_gone_already_holds_nothing_up(
    plain: config.Settings, tenant: str
) -> None:
    async with opened(plain, tenant) as house:
        await rebuild.reindex(house.resources, [Kind.MEMORY])
        await rebuild.create_collections(house.resources)
        await house.settle()
        old, _ = await house.generations()
        await points.drop_collection(house.resources.qdrant, old.collection)
        await retire_long_ago(house)
        await rebuild.advance(house.resources)
        assert len(await house.generations()) == 1


async def test_of_two_that_are_being_built_only_the_newer_one_takes_over(
    plain: config.Settings, tenant: str
) -> None:
    async with opened(plain, tenant) as house:
        entry = await house.save("marmalade")
        for _ in range(2):
            await rebuild.reindex(house.resources, [Kind.MEMORY])
        await rebuild.create_collections(house.resources)
        await house.settle()
        assert [state for state, _ in await states(house)] == ["retiring", "retiring", "live"]
        assert (await search(house))["ids"] == [entry]


async def test_a_search_during_a_rebuild_and_its_swap_never_errs_and_never_misses(
    plain: config.Settings, tenant: str
) -> None:
    async with opened(plain, tenant) as house:
        ids = {await house.save(f"marmalade number {n}") for n in range(12)}
        done, answers = asyncio.Event(), 0

        async def ask_on() -> None:
            nonlocal answers
            while not done.is_set():
                found = await search(house)
                assert found == {"ids": found["ids"], "stages": ["bm25"], "degraded": []}
                assert ids <= set(found["ids"])
                answers += 1

        async with asyncio.TaskGroup() as asking:
            asking.create_task(ask_on())
            for _ in range(2):
                await rebuild.reindex(house.resources, [Kind.MEMORY])
                await rebuild.create_collections(house.resources)
                ids.add(await house.save(f"marmalade saved meanwhile {len(ids)}"))
                await make_due(house.resources)
                await drain(house.resources)
                before = answers
                await retire_long_ago(house)
                await rebuild.advance(house.resources)
                async with asyncio.timeout(20):
                    while answers < before + 5:
                        await asyncio.sleep(0)
            done.set()
        assert len(await house.generations()) == 1
