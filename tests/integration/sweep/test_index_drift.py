"""IX5: points without a record are deleted, records without their point are indexed again."""

from collections.abc import Callable

import pytest

from shared.foundation import config
from shared.foundation.stages import RecordKind
from shared.lifecycle import kinds
from shared.search.index import collections, points
from tests.conftest import running_gateway
from tests.integration.playbooks.conftest import PLAYBOOK
from tests.integration.sweep.stack import TestStack
from tests.standins.models import ModelServer

PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


async def test_points_without_a_record_or_of_other_versions_are_deleted_and_right_ones_kept(
    stack: TestStack,
) -> None:
    memory_id, session = await stack.save("right"), await stack.open_session()
    await stack.client.patch(f"/v1/memories/{memory_id}", json={"content": "right again"})
    await stack.add_turn(session, "right")
    for kind, record_id, version in [
        (RecordKind.MEMORY, "ffffffffffff", 1),
        (RecordKind.MEMORY, memory_id, 1),
        (RecordKind.MEMORY, memory_id, 9),
        (RecordKind.TURN, f"{session}#2", 1),
        (RecordKind.TURN, "nobody#1", 1),
    ]:
        await stack.add_point(kind, record_id, version)
    await stack.add_point(RecordKind.MEMORY, memory_id, 2, tenant="somebody-else")
    counts = await stack.sweep()
    assert counts.orphan_points == 6
    assert await stack.points(RecordKind.MEMORY) == {(memory_id, 2)}
    assert await stack.record_ids(RecordKind.TURN) == {f"{session}#1"}
    assert (await stack.repairs())["orphan_points"] == 6
    assert (await stack.sweep()).orphan_points == 0


async def test_every_kind_pages_counts_and_loads_the_same_records(
    stack: TestStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "_PAGE_SIZE", 2)
    session = await stack.open_session()
    for n in range(5):
        await stack.save(f"fact {n}")
        await stack.add_turn(session, f"turn {n}")
        await stack.put_working(f"session/s/{n}", f"value {n}")
        body = {"kind": "fact", "content": f"observation {n}"}
        response = await stack.client.post(f"/v1/sessions/{session}/observations", json=body)
        assert response.status_code == 201, response.text
        rule = {"condition": {"description": f"situation {n}"}, "effect": {"template": "t"}}
        response = await stack.client.put(f"/v1/preferences/{n}", json=rule)
        assert response.status_code == 200, response.text
        response = await stack.client.put(f"/v1/skills/s{n}", json={"content": f"how {n} is done"})
        assert response.status_code == 200, response.text
        playbook = PLAYBOOK | {"user_query": f"query {n}", "satisfied": True}
        response = await stack.client.post("/v1/playbooks", json=playbook)
        assert response.status_code == 201, response.text
        response = await stack.client.post("/v1/documents", files={"file": (f"{n}.txt", f"text {n}")})
        assert response.status_code == 202, response.text
    # Without a description it is no record of the index.
    await stack.client.put("/v1/preferences/flow", json={**rule, "condition": {"flow": "f"}})
    await stack.process_all()
    for kind in kinds.KINDS.values():
        pages = [page async for page in kind.pages(stack.resources, stack.tenant)]
        versions = {record_id: version for page in pages for record_id, version in page.items()}
        documents = await kind.load_documents(stack.resources, stack.tenant, list(versions))
        assert sum(map(len, pages)) == len(versions) == 5
        assert await kind.count(stack.resources, stack.tenant) == 5
        assert await kind.versions(stack.resources, stack.tenant, list(versions)) == versions
        assert {document.record_id: document.version for document in documents} == versions


async def test_points_of_expired_working_entries_are_deleted(stack: TestStack) -> None:
    await stack.put_working("session/s/live", "still here")
    await stack.add_point(RecordKind.WORKING, "session/s/over", 1, expires_at=PAST)
    await stack.add_point(RecordKind.WORKING, "session/s/nobody", 1, expires_at=FUTURE)
    counts = await stack.sweep()
    assert (counts.expired_working_points, counts.orphan_points) == (1, 1)
    assert await stack.record_ids(RecordKind.WORKING) == {"session/s/live"}
    assert (await stack.repairs())["expired_working_points"] == 1
    await stack.delete_points(RecordKind.WORKING, ["session/s/later"])


async def test_points_that_the_index_lost_are_written_again(stack: TestStack) -> None:
    missing, other = await stack.save("lost marmalade"), await stack.save("kept marmalade")
    session = await stack.open_session()
    await stack.add_turn(session, "first")
    await stack.add_turn(session, "second")
    await stack.put_working("session/s/one", "value")
    await stack.resources.index_writer.close()
    await stack.delete_points(RecordKind.MEMORY, [missing])
    await stack.delete_points(RecordKind.TURN, [f"{session}#1"])
    await stack.delete_points(RecordKind.WORKING, ["session/s/one"])
    assert await stack.search("marmalade") == [other]
    counts = await stack.sweep()
    assert counts.missing_points == 3
    await stack.process_all()
    assert set(await stack.search("marmalade")) == {missing, other}
    assert await stack.record_ids(RecordKind.TURN) == {f"{session}#1", f"{session}#2"}
    assert {record_id for record_id, _ in await stack.points(RecordKind.WORKING)} == {"session/s/one"}
    assert (await stack.repairs())["missing_points"] == 3
    assert (await stack.sweep()).missing_points == 0


async def test_a_record_whose_job_is_pending_is_not_counted_as_missing_again(stack: TestStack) -> None:
    memory_id = await stack.save("on its way")
    await stack.resources.index_writer.close()
    await stack.delete_points(RecordKind.MEMORY, [memory_id])
    assert (await stack.sweep()).missing_points == 1
    assert (await stack.sweep()).missing_points == 0


async def test_a_deleted_collection_is_created_again_and_filled(stack: TestStack) -> None:
    """Qdrant loses its volume."""
    memory_id, session = await stack.save("marmalade"), await stack.open_session()
    await stack.add_turn(session, "said")
    await stack.put_working("session/s/one", "value")
    await stack.resources.index_writer.close()
    for kind in (RecordKind.MEMORY, RecordKind.TURN, RecordKind.WORKING):
        await collections.drop_collection(
            stack.resources.qdrant, (await stack.live_generation(kind)).collection
        )
    response = (await stack.client.post("/v1/memories/search", json={"query": "marmalade"})).json()
    assert response["degraded"] == ["index"]
    assert [result["id"] for result in response["results"]] == [memory_id]
    await stack.sweep()
    await stack.process_all()
    assert await stack.search("marmalade") == [memory_id]
    assert await stack.record_ids(RecordKind.TURN) == {f"{session}#1"}
    assert {record_id for record_id, _ in await stack.points(RecordKind.WORKING)} == {"session/s/one"}
    aliases = (await stack.resources.qdrant.call("GET", "aliases"))["aliases"]
    collection_by_alias = {alias["alias_name"]: alias["collection_name"] for alias in aliases}
    assert (
        collection_by_alias[f"{stack.resources.settings.prefix}_memory"]
        == (await stack.live_generation()).collection
    )


async def test_a_deleted_collection_gets_its_vectors_back(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> None:
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="m")
    async with running_gateway(settings, tenant) as gateway:
        stack = TestStack(gateway)
        memory_id = await stack.save("marmalade on toast")
        await stack.process_all()
        unembedded = await stack.save("not embedded yet")
        await stack.resources.index_writer.close()
        calls_before = len(models.embedding_calls)
        await collections.drop_collection(stack.resources.qdrant, (await stack.live_generation()).collection)
        await stack.sweep()
        for _ in range(
            2
        ):  # a job of the embed stage first goes back to the index stage to have its point written
            await stack.process_all()
        assert set(await stack.search("marmalade on toast not embedded yet")) == {memory_id, unembedded}
        ids = [points.point_id(tenant, RecordKind.MEMORY, item, 1) for item in (memory_id, unembedded)]
        path = f"collections/{(await stack.live_generation()).collection}/points"
        records = await stack.resources.qdrant.call("POST", path, {"ids": ids, "with_vector": ["dense"]})
        assert [len(point["vector"]["dense"]) for point in records] == [64, 64]
        texts = [text for call in models.embedding_calls[calls_before:] for text in call.texts]
        assert "marmalade on toast" not in texts, "its vector is in the cache"
