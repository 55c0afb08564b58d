"""IX2: a changed model or `loci reindex` builds a new generation while searches and saves go on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest
from sqlalchemy import text

from shared.foundation import config
from shared.foundation.stages import SEARCHABLE_KINDS, RecordKind
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.resources import Resources, open_resources
from shared.search.index import collections, generations
from shared.search.index.generations import Generation
from tests.conftest import serving
from tests.integration.sweep.house import TestStack
from tests.standins.behaviours import Status
from tests.standins.models import ModelServer


@pytest.fixture
def plain(make_settings: Callable[..., config.Settings]) -> config.Settings:
    """An installation without any model."""
    return make_settings(apart=True)


@asynccontextmanager
async def opened(settings: config.Settings, tenant: str, **changes: object) -> AsyncIterator[TestStack]:
    """Start the installation, with what has changed in its settings."""
    async with serving(settings.model_copy(update=changes), tenant) as gateway:
        yield TestStack(gateway)


def embedding(models: ModelServer, model: str = "m") -> dict[str, object]:
    return {"embedding_base_url": models.url, "embedding_model": model}


async def search(house: TestStack, query: str = "marmalade") -> dict[str, list[str]]:
    answer = await house.client.post("/v1/memories/search", json={"query": query})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return {
        "ids": [one["id"] for one in told["results"]],
        "stages": told["stages"],
        "degraded": told["degraded"],
    }


async def retire_long_ago(house: TestStack) -> None:
    async with house.resources.postgres.across_tenants() as connection:
        age = rebuild_index.RETIRE_AFTER + timedelta(seconds=1)
        moved = text("UPDATE index_generation SET retired_at = now() - CAST(:age AS interval)")
        await connection.execute(moved, {"age": age})


async def states(house: TestStack) -> list[tuple[str, str | None]]:
    return [(one.state, one.model) for one in await house.generations()]


async def test_configuring_a_model_later_makes_old_rows_due_and_takes_over_when_none_is_behind(
    plain: config.Settings, tenant: str, models: ModelServer
) -> None:
    """IX4."""
    async with opened(plain, tenant) as house:
        old = await house.save("orange marmalade")
        assert (await house.client.get("/v1/status")).json()["pending"]["embedding"] == 0
    models.embedding_default = Status(500)
    async with opened(plain, tenant, **embedding(models), embedding_dimension=64) as house:
        assert await search(house) == {"ids": [old], "stages": ["bm25"], "degraded": ["dense"]}
        await house.settle()
        assert await states(house) == [("live", None), ("building", "m")], "not without its vector"
        models.reset()
        await house.settle()
        assert await states(house) == [("retiring", None), ("live", "m")]
    async with opened(plain, tenant, **embedding(models)) as house:
        assert await search(house) == {"ids": [old], "stages": ["bm25", "dense"], "degraded": []}
        assert (await house.sweep()).generations_begun == 0


async def test_another_dimension_behind_the_same_name_is_another_model(
    plain: config.Settings, tenant: str, models: ModelServer
) -> None:
    """What the old one embedded, in the index and in the cache, is of no use to the new one."""
    async with opened(plain, tenant, **embedding(models)) as house:
        old = await house.save("orange marmalade")
        await house.settle()
        models.embedding_default = Status(500)
        unfinished = await house.save("bitter marmalade")
        await house.settle()
    models.reset()
    models.dimension = 32
    async with opened(plain, tenant, **embedding(models)) as house:
        assert await dimensions(house) == [("live", 64), ("building", 32)]
        answer = await search(house)
        assert (set(answer["ids"]), answer["degraded"]) == ({old, unfinished}, ["dense"])
        async with asyncio.timeout(60):
            await house.settle()
        assert await house.sql("SELECT 1 FROM job WHERE pipeline = 'index'") == []
        assert await dimensions(house) == [("retiring", 64), ("live", 32)]
    async with opened(plain, tenant, **embedding(models)) as house:
        answer = await search(house)
        assert (set(answer["ids"]), answer["stages"]) == ({old, unfinished}, ["bm25", "dense"])
        cached = await house.sql("SELECT octet_length(vector) AS size FROM embedding_cache")
        assert {row.size for row in cached} == {32 * 4}, "kept for the next rebuild"


async def dimensions(house: TestStack) -> list[tuple[str, int | None]]:
    return [(one.state, one.dimension) for one in await house.generations()]


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
        assert (await house.sweep()).generations_begun == len(SEARCHABLE_KINDS)
        assert await house.repairs() == {"generations_begun": len(SEARCHABLE_KINDS)}
        assert (await house.sweep()).generations_begun == 0
        await house.settle()
        assert await states(house) == [("retiring", None), ("live", "m")]


async def test_processes_that_start_at_the_same_moment_all_come_up(plain: config.Settings) -> None:
    """Kubernetes starts replicas together: who finds a collection just created by another goes on."""
    async with AsyncExitStack() as opening:
        several = [await opening.enter_async_context(open_resources(plain)) for _ in range(6)]
        await asyncio.gather(*(rebuild_index.prepare_index(one) for one in several))
        found = [
            await collections.exists(several[0].qdrant, one.collection)
            for one in await generations_of(several[0])
        ]
    assert found == [True] * len(SEARCHABLE_KINDS)


async def generations_of(resources: Resources) -> list[Generation]:
    async with resources.postgres.across_tenants() as connection:
        return await generations.list_generations(connection)


@pytest.fixture
async def one(house: TestStack) -> TestStack:
    """A house with one generation of memories."""
    await retire_long_ago(house)
    await rebuild_index.promote_ready(house.resources)
    assert len(await house.generations()) == 1
    return house


async def begin(house: TestStack) -> Generation:
    """Begin to rebuild the memories."""
    (begun,) = await rebuild_index.start_reindex(house.resources, [RecordKind.MEMORY])
    await rebuild_index.create_collections(house.resources)
    return begun


async def test_what_is_saved_changed_and_deleted_meanwhile_is_right_in_every_generation(
    one: TestStack,
) -> None:
    changed, deleted, kept = [await one.save(f"marmalade {name}") for name in ("one", "two", "three")]
    live, building = await one.live(), await begin(one)
    fresh = await one.save("fresh marmalade")
    await one.client.patch(f"/v1/memories/{changed}", json={"content": "marmalade, changed"})
    await one.client.delete(f"/v1/memories/{deleted}")
    right = {(changed, 2), (kept, 1), (fresh, 1)}
    assert await one.points(generation=live) == right
    assert {(changed, 2), (fresh, 1)} <= await one.points(generation=building)
    await one.settle()
    assert await one.points(generation=building) == right
    assert (await one.live()).id == building.id
    later = await one.save("marmalade after the swap")
    assert (later, 1) in await one.points(generation=live), "a retiring one is written a little longer"
    assert (later, 1) in await one.points(generation=building)


async def test_a_retired_generation_is_dropped_when_nobody_can_be_reading_it(one: TestStack) -> None:
    entry, old, new = await one.save("marmalade"), await one.live(), await begin(one)
    await one.settle()
    await rebuild_index.promote_ready(one.resources)
    assert await collections.exists(one.resources.qdrant, old.collection)
    await retire_long_ago(one)
    await rebuild_index.promote_ready(one.resources)
    assert not await collections.exists(one.resources.qdrant, old.collection)
    assert [generation.id for generation in await one.generations()] == [new.id]
    assert await one.sql("SELECT 1 FROM job WHERE generation = :id", id=old.id) == []
    assert (await search(one))["ids"] == [entry]


async def test_a_retired_collection_that_is_gone_already_holds_nothing_up(one: TestStack) -> None:
    old = await one.live()
    await begin(one)
    await one.settle()
    await collections.drop_collection(one.resources.qdrant, old.collection)
    await retire_long_ago(one)
    await rebuild_index.promote_ready(one.resources)
    assert len(await one.generations()) == 1


async def test_of_two_that_are_being_built_only_the_newer_one_takes_over(one: TestStack) -> None:
    entry = await one.save("marmalade")
    for _ in range(2):
        await begin(one)
    await one.settle()
    assert [state for state, _ in await states(one)] == ["retiring", "retiring", "live"]
    assert (await search(one))["ids"] == [entry]


async def test_one_without_its_collection_does_not_take_over(one: TestStack) -> None:
    """Qdrant was away when it was begun; with no record to write nothing else would hold it back."""
    live = await one.live()
    (begun,) = await rebuild_index.start_reindex(one.resources, [RecordKind.MEMORY])
    async with one.resources.postgres.across_tenants() as connection:
        await connection.execute(text("DELETE FROM job WHERE generation = :id"), {"id": begun.id})
    assert await rebuild_index.promote_ready(one.resources) == []
    assert (await one.live()).id == live.id
    await rebuild_index.create_collections(one.resources)
    await one.settle()
    assert (await one.live()).id == begun.id


async def test_a_search_during_a_rebuild_and_its_swap_never_errs_and_never_misses(one: TestStack) -> None:
    ids = {await one.save(f"marmalade number {n}") for n in range(12)}
    answered, done = asyncio.Condition(), asyncio.Event()
    answers = 0

    async def ask_on() -> None:
        nonlocal answers
        while not done.is_set():
            known = set(ids)
            found = await search(one)
            assert (found["stages"], found["degraded"]) == (["bm25"], [])
            assert known <= set(found["ids"])
            async with answered:
                answers += 1
                answered.notify_all()

    async with asyncio.TaskGroup() as asking, asyncio.timeout(60):
        asking.create_task(ask_on())
        for _ in range(2):
            await begin(one)
            ids.add(await one.save(f"marmalade saved meanwhile {len(ids)}"))
            await one.settle()
            await retire_long_ago(one)
            await rebuild_index.promote_ready(one.resources)
            async with answered:
                enough = answers + 5
                await answered.wait_for(lambda: answers >= enough)  # noqa: B023
        done.set()
    assert len(await one.generations()) == 1
