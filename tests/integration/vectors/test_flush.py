"""What the local server writes and removes during pauses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.local.vectors import flush, queries, writes
from services.local.vectors.catalog import Catalog
from services.local.vectors.collection import Collection
from tests.integration.vectors.conftest import point_id

SCHEMA = {
    "vectors": {"dense": {"size": 4, "distance": "Cosine"}},
    "sparse_vectors": {"bm25": {"modifier": "idf"}},
}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """Return a catalog with one empty collection `c`."""
    catalog = Catalog(tmp_path)
    catalog.create("c", SCHEMA)
    yield catalog
    catalog.close()


def fill(collection: Collection, count: int) -> None:
    points: list[Any] = [
        {
            "id": point_id(number),
            "vector": {
                "dense": [1.0, number / 1000, 0, 0],
                "bm25": {"indices": [number % 9], "values": [1.0]},
            },
            "payload": {"n": number},
        }
        for number in range(count)
    ]
    collection.write(writes.upsert({"points": points}))


def delete(collection: Collection, numbers: range) -> None:
    collection.write(writes.delete_points({"points": [point_id(number) for number in numbers]}))


def search_results(collection: Collection) -> list[Any]:
    searches = [
        {"query": [0.0, 1.0, 0, 0], "using": "dense", "limit": 50, "with_payload": True},
        {"query": {"indices": [3], "values": [1.0]}, "using": "bm25", "limit": 3000},
    ]
    results = collection.search_batch(queries.read_batch({"searches": searches}))
    return [sorted(str(hit["id"]) for hit in result["points"]) for result in results]


def test_written_points_are_flushed_during_a_pause(catalog: Catalog) -> None:
    collection = catalog.get("c")
    fill(collection, 10)
    flush.flush_if_idle(catalog, idle_seconds=0.1)
    assert collection.unsaved == 10
    flush.flush_if_idle(catalog, idle_seconds=2.0)
    assert collection.unsaved == 0


def test_many_unsaved_points_are_flushed_without_a_pause(catalog: Catalog) -> None:
    collection = catalog.get("c")
    fill(collection, flush.MAX_UNSAVED_POINTS)
    flush.flush_if_idle(catalog, idle_seconds=0)
    assert collection.unsaved == 0


def test_a_long_pause_removes_deleted_points_and_changes_no_result(catalog: Catalog, tmp_path: Path) -> None:
    collection = catalog.get("c")
    fill(collection, 4000)
    delete(collection, range(0, 4000, 2))
    before, segments = search_results(collection), set(tmp_path.glob("collections/*/segments/*"))
    flush.flush_if_idle(catalog, idle_seconds=3.0)
    assert set(tmp_path.glob("collections/*/segments/*")) == segments
    flush.flush_if_idle(catalog, idle_seconds=60.0)
    assert not segments & set(tmp_path.glob("collections/*/segments/*"))
    assert search_results(collection) == before
    fill(collection, 10)
    assert collection.count(queries.read_count({})) == {"count": 2005}


def test_opening_restores_all_collections_and_removes_an_incomplete_one(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create("c", SCHEMA)
    fill(catalog.get("c"), 20)
    before = search_results(catalog.get("c"))
    catalog.close()
    incomplete = tmp_path / "collections" / "000009"
    incomplete.mkdir()
    reopened = Catalog(tmp_path)
    assert (reopened.names, search_results(reopened.get("c"))) == (["c"], before)
    assert not incomplete.exists()
    reopened.close()


def test_a_collection_name_is_never_used_as_a_path(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create("..", SCHEMA)
    assert [path.name for path in sorted((tmp_path / "collections").iterdir())] == ["000001", "000002"]
