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
from tests.conftest import running_gateway
from tests.integration.sweep.stack import TestStack
from tests.standins.behaviours import Status
from tests.standins.models import ModelServer


@pytest.fixture
def settings_without_model(make_settings: Callable[..., config.Settings]) -> config.Settings:
    """Return the settings of an installation without models."""
    return make_settings(apart=True)


@asynccontextmanager
async def start_installation(
    settings: config.Settings, tenant: str, **changes: object
) -> AsyncIterator[TestStack]:
    """Start the installation with changed settings."""
    async with running_gateway(settings.model_copy(update=changes), tenant) as gateway:
        yield TestStack(gateway)


def embedding(models: ModelServer, model: str = "m") -> dict[str, object]:
    return {"embedding_base_url": models.url, "embedding_model": model}


async def search(stack: TestStack, query: str = "marmalade") -> dict[str, list[str]]:
    response = await stack.client.post("/v1/memories/search", json={"query": query})
    assert response.status_code == 200, response.text
    payload = response.json()
    return {
        "ids": [result["id"] for result in payload["results"]],
        "stages": payload["stages"],
        "degraded": payload["degraded"],
    }


async def backdate_retirement(stack: TestStack) -> None:
    async with stack.resources.postgres.across_tenants() as tx:
        age = rebuild_index.RETIRE_AFTER + timedelta(seconds=1)
        statement = text("UPDATE index_generation SET retired_at = now() - CAST(:age AS interval)")
        await tx.execute(statement, {"age": age})


async def states(stack: TestStack) -> list[tuple[str, str | None]]:
    return [(generation.state, generation.model) for generation in await stack.generations()]


async def test_a_model_configured_later_makes_old_records_due_and_goes_live_when_all_are_embedded(
    settings_without_model: config.Settings, tenant: str, models: ModelServer
) -> None:
    """IX4."""
    async with start_installation(settings_without_model, tenant) as stack:
        old = await stack.save("orange marmalade")
        assert (await stack.client.get("/v1/status")).json()["pending"]["embedding"] == 0
    models.embedding_default = Status(500)
    async with start_installation(
        settings_without_model, tenant, **embedding(models), embedding_dimension=64
    ) as stack:
        assert await search(stack) == {"ids": [old], "stages": ["bm25"], "degraded": ["dense"]}
        await stack.process_all()
        assert await states(stack) == [("live", None), ("building", "m")], "not without its vector"
        models.reset()
        await stack.process_all()
        assert await states(stack) == [("retiring", None), ("live", "m")]
    async with start_installation(settings_without_model, tenant, **embedding(models)) as stack:
        assert await search(stack) == {"ids": [old], "stages": ["bm25", "dense"], "degraded": []}
        assert (await stack.sweep()).generations_begun == 0


async def test_the_same_model_name_with_another_dimension_is_another_model(
    settings_without_model: config.Settings, tenant: str, models: ModelServer
) -> None:
    """Vectors of the old dimension, in the index and in the cache, are not used for the new one."""
    async with start_installation(settings_without_model, tenant, **embedding(models)) as stack:
        old = await stack.save("orange marmalade")
        await stack.process_all()
        models.embedding_default = Status(500)
        unfinished = await stack.save("bitter marmalade")
        await stack.process_all()
    models.reset()
    models.dimension = 32
    async with start_installation(settings_without_model, tenant, **embedding(models)) as stack:
        assert await dimensions(stack) == [("live", 64), ("building", 32)]
        response = await search(stack)
        assert (set(response["ids"]), response["degraded"]) == ({old, unfinished}, ["dense"])
        async with asyncio.timeout(60):
            await stack.process_all()
        assert await stack.sql("SELECT 1 FROM job WHERE pipeline = 'index'") == []
        assert await dimensions(stack) == [("retiring", 64), ("live", 32)]
    async with start_installation(settings_without_model, tenant, **embedding(models)) as stack:
        response = await search(stack)
        assert (set(response["ids"]), response["stages"]) == ({old, unfinished}, ["bm25", "dense"])
        rows = await stack.sql("SELECT octet_length(vector) AS size FROM embedding_cache")
        assert {row.size for row in rows} == {32 * 4}, "kept for the next rebuild"


async def dimensions(stack: TestStack) -> list[tuple[str, int | None]]:
    return [(generation.state, generation.dimension) for generation in await stack.generations()]


async def test_the_sweep_creates_generations_that_a_start_could_not(
    settings_without_model: config.Settings, tenant: str, models: ModelServer
) -> None:
    async with start_installation(settings_without_model, tenant):
        pass
    models.stop()
    async with start_installation(settings_without_model, tenant, **embedding(models)) as stack:
        assert await states(stack) == [("live", None)]
        assert (await stack.sweep()).generations_begun == 0
        models.start()
        assert (await stack.sweep()).generations_begun == len(SEARCHABLE_KINDS)
        assert await stack.repairs() == {"generations_begun": len(SEARCHABLE_KINDS)}
        assert (await stack.sweep()).generations_begun == 0
        await stack.process_all()
        assert await states(stack) == [("retiring", None), ("live", "m")]


async def test_processes_that_start_at_the_same_moment_all_start(
    settings_without_model: config.Settings,
) -> None:
    """Kubernetes starts replicas together: a collection that another has just created is no error."""
    async with AsyncExitStack() as opening:
        processes = [
            await opening.enter_async_context(open_resources(settings_without_model)) for _ in range(6)
        ]
        await asyncio.gather(*(rebuild_index.prepare_index(resources) for resources in processes))
        exists = [
            await collections.exists(processes[0].qdrant, generation.collection)
            for generation in await generations_of(processes[0])
        ]
    assert exists == [True] * len(SEARCHABLE_KINDS)


async def generations_of(resources: Resources) -> list[Generation]:
    async with resources.postgres.across_tenants() as tx:
        return await generations.list_generations(tx)


@pytest.fixture
async def single_stack(stack: TestStack) -> TestStack:
    """Return a stack with one generation of memories."""
    await backdate_retirement(stack)
    await rebuild_index.promote_ready(stack.resources)
    assert len(await stack.generations()) == 1
    return stack


async def start_reindex(stack: TestStack) -> Generation:
    """Start to rebuild the index of memories."""
    (new_generation,) = await rebuild_index.start_reindex(stack.resources, [RecordKind.MEMORY])
    await rebuild_index.create_collections(stack.resources)
    return new_generation


async def test_saves_updates_and_deletes_during_a_rebuild_are_in_every_generation(
    single_stack: TestStack,
) -> None:
    changed, deleted, unchanged = [
        await single_stack.save(f"marmalade {name}") for name in ("one", "two", "three")
    ]
    live, building = await single_stack.live_generation(), await start_reindex(single_stack)
    new_memory = await single_stack.save("fresh marmalade")
    await single_stack.client.patch(f"/v1/memories/{changed}", json={"content": "marmalade, changed"})
    await single_stack.client.delete(f"/v1/memories/{deleted}")
    expected_points = {(changed, 2), (unchanged, 1), (new_memory, 1)}
    assert await single_stack.points(generation=live) == expected_points
    assert {(changed, 2), (new_memory, 1)} <= await single_stack.points(generation=building)
    await single_stack.process_all()
    assert await single_stack.points(generation=building) == expected_points
    assert (await single_stack.live_generation()).id == building.id
    later_memory = await single_stack.save("marmalade after the swap")
    assert (later_memory, 1) in await single_stack.points(generation=live), (
        "a retiring generation is still written for a while"
    )
    assert (later_memory, 1) in await single_stack.points(generation=building)


async def test_a_retired_generation_is_deleted_when_nobody_can_be_reading_it(single_stack: TestStack) -> None:
    memory_id, old, new = (
        await single_stack.save("marmalade"),
        await single_stack.live_generation(),
        await start_reindex(single_stack),
    )
    await single_stack.process_all()
    await rebuild_index.promote_ready(single_stack.resources)
    assert await collections.exists(single_stack.resources.qdrant, old.collection)
    await backdate_retirement(single_stack)
    await rebuild_index.promote_ready(single_stack.resources)
    assert not await collections.exists(single_stack.resources.qdrant, old.collection)
    assert [generation.id for generation in await single_stack.generations()] == [new.id]
    assert await single_stack.sql("SELECT 1 FROM job WHERE generation = :id", id=old.id) == []
    assert (await search(single_stack))["ids"] == [memory_id]


async def test_a_retired_collection_that_is_deleted_already_blocks_nothing(single_stack: TestStack) -> None:
    old = await single_stack.live_generation()
    await start_reindex(single_stack)
    await single_stack.process_all()
    await collections.drop_collection(single_stack.resources.qdrant, old.collection)
    await backdate_retirement(single_stack)
    await rebuild_index.promote_ready(single_stack.resources)
    assert len(await single_stack.generations()) == 1


async def test_of_two_building_generations_only_the_newer_goes_live(single_stack: TestStack) -> None:
    memory_id = await single_stack.save("marmalade")
    for _ in range(2):
        await start_reindex(single_stack)
    await single_stack.process_all()
    assert [state for state, _ in await states(single_stack)] == ["retiring", "retiring", "live"]
    assert (await search(single_stack))["ids"] == [memory_id]


async def test_a_generation_without_its_collection_does_not_go_live(single_stack: TestStack) -> None:
    """Qdrant was unavailable when it was created, and there is no record whose job would delay it."""
    live = await single_stack.live_generation()
    (new_generation,) = await rebuild_index.start_reindex(single_stack.resources, [RecordKind.MEMORY])
    async with single_stack.resources.postgres.across_tenants() as tx:
        await tx.execute(text("DELETE FROM job WHERE generation = :id"), {"id": new_generation.id})
    assert await rebuild_index.promote_ready(single_stack.resources) == []
    assert (await single_stack.live_generation()).id == live.id
    await rebuild_index.create_collections(single_stack.resources)
    await single_stack.process_all()
    assert (await single_stack.live_generation()).id == new_generation.id


async def test_a_search_during_a_rebuild_and_its_swap_never_fails_and_never_misses(
    single_stack: TestStack,
) -> None:
    ids = {await single_stack.save(f"marmalade number {n}") for n in range(12)}
    search_finished, is_done = asyncio.Condition(), asyncio.Event()
    search_count = 0

    async def keep_searching() -> None:
        nonlocal search_count
        while not is_done.is_set():
            expected_ids = set(ids)
            result = await search(single_stack)
            assert (result["stages"], result["degraded"]) == (["bm25"], [])
            assert expected_ids <= set(result["ids"])
            async with search_finished:
                search_count += 1
                search_finished.notify_all()

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(60):
        tasks.create_task(keep_searching())
        for _ in range(2):
            await start_reindex(single_stack)
            ids.add(await single_stack.save(f"marmalade saved meanwhile {len(ids)}"))
            await single_stack.process_all()
            await backdate_retirement(single_stack)
            await rebuild_index.promote_ready(single_stack.resources)
            async with search_finished:
                target_count = search_count + 5
                await search_finished.wait_for(lambda: search_count >= target_count)  # noqa: B023
        is_done.set()
    assert len(await single_stack.generations()) == 1
