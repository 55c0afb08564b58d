"""Points: writing, changing, deleting and reading."""

from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from tests.integration.vectors.conftest import numbers, point_id, unit, words

pytestmark = pytest.mark.asyncio

UNICODE = {
    "content": "Zoë mag 日本語 und 🦊, \u202bשלח\u202c; \x00 too",
    "nested": {"ключ": [1, 2.5, None, True, {"ß": []}]},
    "большой": 2**53,
}


async def sparse_points(client: AsyncQdrantClient, name: str, count: int) -> None:
    points = [
        models.PointStruct(id=point_id(i), vector={"bm25": words(i)}, payload={"n": i}) for i in range(count)
    ]
    await client.upsert(name, points)


async def fetch(client: AsyncQdrantClient, name: str, number: int) -> models.Record:
    (record,) = await client.retrieve(name, [point_id(number)], with_vectors=True)
    return record


async def test_a_payload_is_returned_unchanged(client: AsyncQdrantClient, collection: str) -> None:
    await client.upsert(collection, [models.PointStruct(id=point_id(1), vector={}, payload=UNICODE)])
    assert (await fetch(client, collection, 1)).payload == UNICODE


async def test_lists_and_batches_store_the_same_points(client: AsyncQdrantClient, collection: str) -> None:
    await client.upsert(
        collection,
        [
            models.PointStruct(
                id=point_id(1), vector={"dense": unit(0), "bm25": words(7, 9)}, payload={"n": 1}
            )
        ],
    )
    batch = models.Batch(
        ids=[point_id(2)],
        vectors={"dense": [unit(0)], "bm25": [words(7, 9)]},
        payloads=[{"n": 1}],
    )
    await client.upsert(collection, batch, wait=False)
    from_list, from_batch = [await fetch(client, collection, number) for number in (1, 2)]
    assert (from_list.vector, from_list.payload) == (from_batch.vector, from_batch.payload)
    assert from_list.vector == {"dense": unit(0), "bm25": words(7, 9)}


async def test_an_upsert_replaces_the_whole_point(client: AsyncQdrantClient, collection: str) -> None:
    first = models.PointStruct(id=point_id(1), vector={"dense": unit(0)}, payload={"a": 1})
    await client.upsert(collection, [first])
    await client.upsert(
        collection, [models.PointStruct(id=point_id(1), vector={"bm25": words(1)}, payload={"b": 2})]
    )
    record = await fetch(client, collection, 1)
    assert (record.vector, record.payload) == ({"bm25": words(1)}, {"b": 2})


async def test_adding_a_vector_later_does_not_change_payload_and_keywords(
    client: AsyncQdrantClient, collection: str
) -> None:
    await sparse_points(client, collection, 3)
    assert numbers((await client.query_points(collection, query=unit(0), using="dense")).points) == []
    await client.update_vectors(collection, [models.PointVectors(id=point_id(1), vector={"dense": unit(0)})])
    record = await fetch(client, collection, 1)
    assert (record.vector, record.payload) == ({"dense": unit(0), "bm25": words(1)}, {"n": 1})
    assert numbers((await client.query_points(collection, query=unit(0), using="dense")).points) == [1]


async def test_a_vector_for_a_missing_point_is_404_and_earlier_ones_are_stored(
    client: AsyncQdrantClient, collection: str
) -> None:
    await sparse_points(client, collection, 2)
    vectors = [models.PointVectors(id=point_id(n), vector={"dense": unit(0)}) for n in (1, 99)]
    with pytest.raises(UnexpectedResponse) as error_info:
        await client.update_vectors(collection, vectors)
    assert error_info.value.status_code == 404
    assert b"No point with id" in error_info.value.content
    assert "dense" in ((await fetch(client, collection, 1)).vector or {})
    assert await client.retrieve(collection, [point_id(99)]) == []


async def test_set_payload_changes_its_keys_only(client: AsyncQdrantClient, collection: str) -> None:
    await sparse_points(client, collection, 3)
    await client.set_payload(collection, {"state": "archived"}, points=[point_id(1)])
    point_filter = models.Filter(must=[models.FieldCondition(key="n", range=models.Range(gte=2))])
    await client.set_payload(collection, {"state": "final"}, points=point_filter)
    payloads = [(await fetch(client, collection, number)).payload for number in range(3)]
    assert payloads == [{"n": 0}, {"n": 1, "state": "archived"}, {"n": 2, "state": "final"}]


async def test_set_payload_of_a_missing_point_is_404(client: AsyncQdrantClient, collection: str) -> None:
    with pytest.raises(UnexpectedResponse) as error_info:
        await client.set_payload(collection, {"a": 1}, points=[point_id(99)])
    assert error_info.value.status_code == 404


async def test_points_are_deleted_by_id_and_by_filter(client: AsyncQdrantClient, collection: str) -> None:
    await sparse_points(client, collection, 6)
    await client.delete(collection, [point_id(0), point_id(99)])
    point_filter = models.Filter(must=[models.FieldCondition(key="n", match=models.MatchAny(any=[1, 2]))])
    await client.delete(collection, models.FilterSelector(filter=point_filter))
    records, _ = await client.scroll(collection)
    assert numbers(records) == [3, 4, 5]
    assert (await client.count(collection)).count == 3


async def test_a_deleted_vector_is_no_longer_found(client: AsyncQdrantClient, collection: str) -> None:
    both: dict[str, Any] = {"dense": unit(0), "bm25": words(1)}
    await client.upsert(collection, [models.PointStruct(id=point_id(n), vector=both) for n in (1, 2)])
    await client.delete_vectors(collection, ["dense"], [point_id(1)])
    assert numbers((await client.query_points(collection, query=unit(0), using="dense")).points) == [2]
    assert (await fetch(client, collection, 1)).vector == {"bm25": words(1)}


async def test_scrolling_returns_every_matching_point_once(
    client: AsyncQdrantClient, collection: str
) -> None:
    await sparse_points(client, collection, 25)
    point_filter = models.Filter(must=[models.FieldCondition(key="n", range=models.Range(gte=5))])
    scrolled: list[int] = []
    offset: models.ExtendedPointId | None = None
    while True:
        records, offset = await client.scroll(
            collection, point_filter, limit=7, offset=offset, with_payload=False
        )
        assert all(record.payload is None and record.vector is None for record in records)
        scrolled += numbers(records)
        if offset is None:
            break
    assert scrolled == list(range(5, 25))


async def test_reading_returns_only_what_is_selected(client: AsyncQdrantClient, collection: str) -> None:
    payload = {"a": 1, "b": {"c": 2, "d": 3}}
    vectors: dict[str, Any] = {"dense": unit(0), "bm25": words(1)}
    await client.upsert(collection, [models.PointStruct(id=point_id(1), vector=vectors, payload=payload)])
    ids = [point_id(1)]
    (whole,) = await client.retrieve(collection, ids)
    (selected,) = await client.retrieve(collection, ids, with_payload=["b.c"], with_vectors=["bm25"])
    without_b = models.PayloadSelectorExclude(exclude=["b"])
    (reduced,) = await client.retrieve(collection, ids, with_payload=without_b)
    assert (whole.payload, whole.vector) == (payload, None)
    assert (selected.payload, selected.vector) == ({"b": {"c": 2}}, {"bm25": words(1)})
    assert reduced.payload == {"a": 1}
