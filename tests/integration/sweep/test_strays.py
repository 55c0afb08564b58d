"""I2, IX5, F7, F23: points without a record go, records without their point come back."""

from collections.abc import Callable

from shared.foundation import config
from shared.foundation.stages import RecordKind
from shared.search.index import collections, points
from tests.conftest import serving
from tests.integration.sweep.house import TestStack
from tests.standins.models import ModelServer

PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


async def test_points_without_a_record_and_of_other_versions_go_and_right_ones_stay(house: TestStack) -> None:
    entry, session = await house.save("right"), await house.open()
    await house.client.patch(f"/v1/memories/{entry}", json={"content": "right again"})
    await house.say(session, "right")
    for kind, ref, version in [
        (RecordKind.MEMORY, "ffffffffffff", 1),
        (RecordKind.MEMORY, entry, 1),
        (RecordKind.MEMORY, entry, 9),
        (RecordKind.TURN, f"{session}#2", 1),
        (RecordKind.TURN, "nobody#1", 1),
    ]:
        await house.plant(kind, ref, version)
    await house.plant(RecordKind.MEMORY, entry, 2, tenant="somebody-else")
    counts = await house.sweep()
    assert counts.orphan_points == 6
    assert await house.points(RecordKind.MEMORY) == {(entry, 2)}
    assert await house.points(RecordKind.TURN) == {(f"{session}#1", 1)}
    assert (await house.repairs())["orphan_points"] == 6
    assert (await house.sweep()).orphan_points == 0


async def test_points_of_desk_entries_whose_time_is_over_go(house: TestStack) -> None:
    await house.lay("session/s/live", "still here")
    await house.plant(RecordKind.WORKING, "session/s/over", 1, expires_at=PAST)
    await house.plant(RecordKind.WORKING, "session/s/later", 1, expires_at=FUTURE)
    counts = await house.sweep()
    assert counts.expired_working_points == 1
    assert {ref for ref, _ in await house.points(RecordKind.WORKING)} == {"session/s/live", "session/s/later"}
    assert (await house.repairs())["expired_desk_points"] == 1
    await house.lose(RecordKind.WORKING, ["session/s/later"])


async def test_points_that_the_index_lost_come_back(house: TestStack) -> None:
    lost, kept = await house.save("lost marmalade"), await house.save("kept marmalade")
    session = await house.open()
    await house.say(session, "first")
    await house.say(session, "second")
    await house.lay("session/s/one", "value")
    await house.resources.index_writer.close()
    await house.lose(RecordKind.MEMORY, [lost])
    await house.lose(RecordKind.TURN, [f"{session}#1"])
    await house.lose(RecordKind.WORKING, ["session/s/one"])
    assert await house.found("marmalade") == [kept]
    counts = await house.sweep()
    assert counts.missing_points == 3
    await house.settle()
    assert set(await house.found("marmalade")) == {lost, kept}
    assert await house.points(RecordKind.TURN) == {(f"{session}#1", 1), (f"{session}#2", 1)}
    assert {ref for ref, _ in await house.points(RecordKind.WORKING)} == {"session/s/one"}
    assert (await house.repairs())["missing_points"] == 3
    assert (await house.sweep()).missing_points == 0


async def test_a_point_that_is_on_its_way_already_is_not_counted_as_lost(house: TestStack) -> None:
    entry = await house.save("on its way")
    await house.resources.index_writer.close()
    await house.lose(RecordKind.MEMORY, [entry])
    assert (await house.sweep()).missing_points == 1
    assert (await house.sweep()).missing_points == 0


async def test_a_collection_that_was_deleted_is_made_anew_and_filled(house: TestStack) -> None:
    """F7: Qdrant loses its volume."""
    entry, session = await house.save("marmalade"), await house.open()
    await house.say(session, "said")
    await house.lay("session/s/one", "value")
    await house.resources.index_writer.close()
    for kind in (RecordKind.MEMORY, RecordKind.TURN, RecordKind.WORKING):
        await collections.drop_collection(house.resources.qdrant, (await house.live(kind)).collection)
    answer = (await house.client.post("/v1/memories/search", json={"query": "marmalade"})).json()
    assert answer["degraded"] == ["index"]
    assert [one["id"] for one in answer["results"]] == [entry]
    await house.sweep()
    await house.settle()
    assert await house.found("marmalade") == [entry]
    assert await house.points(RecordKind.TURN) == {(f"{session}#1", 1)}
    assert {ref for ref, _ in await house.points(RecordKind.WORKING)} == {"session/s/one"}
    aliases = (await house.resources.qdrant.client.get_aliases()).aliases
    named = {alias.alias_name: alias.collection_name for alias in aliases}
    assert named[f"{house.resources.settings.prefix}_memory"] == (await house.live()).collection


async def test_a_collection_that_was_deleted_gets_its_vectors_back(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> None:
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="m")
    async with serving(settings, tenant) as gateway:
        house = TestStack(gateway)
        entry = await house.save("marmalade on toast")
        await house.settle()
        waiting = await house.save("not embedded yet")
        await house.resources.index_writer.close()
        asked = len(models.embedding_calls)
        await collections.drop_collection(house.resources.qdrant, (await house.live()).collection)
        await house.sweep()
        for _ in range(2):  # what waited to be embedded goes back to have its point written first
            await house.settle()
        assert set(await house.found("marmalade on toast not embedded yet")) == {entry, waiting}
        info = await house.resources.qdrant.client.retrieve(
            (await house.live()).collection,
            [points.point_id(tenant, RecordKind.MEMORY, one, 1) for one in (entry, waiting)],
            with_vectors=["dense"],
        )
        assert [len(point.vector["dense"]) for point in info] == [64, 64]  # type: ignore[arg-type, call-overload, index]
        texts = [text for call in models.embedding_calls[asked:] for text in call.texts]
        assert "marmalade on toast" not in texts, "its vector is in the cache"
