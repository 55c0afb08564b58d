"""A real Qdrant server that merges segments all the time: what was just written is found at once."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

from shared.foundation import config
from shared.foundation.stages import RecordKind
from shared.infra.qdrant import Qdrant
from shared.search.index import collections, points
from shared.search.index.client import IndexQuery, SearchIndex
from shared.search.index.filters import field_equals
from shared.search.index.generations import Generation
from shared.search.index.missing_points import MissingPoints
from shared.search.index.points import IndexDocument
from tests.long_form import in_long_form
from tests.stores.qdrant_binary import QdrantBinary, Unobtainable

ROUNDS = in_long_form(150, otherwise=40)
COLLECTION = "busy"


@pytest.fixture
async def qdrant(tmp_path: Path) -> AsyncIterator[Qdrant]:
    """Return a client of a real server."""
    server = QdrantBinary(tmp_path)
    try:
        url = server.start()
    except Unobtainable as error:
        pytest.skip(f"no real Qdrant server is available: {error}")
    client = Qdrant(config.load(qdrant_url=url, qdrant_timeout=10))
    try:
        yield client
    finally:
        await client.close()
        server.kill()


async def test_a_point_is_found_by_keyword_at_once_while_the_server_merges_segments(
    qdrant: Qdrant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live(_: SearchIndex, kind: RecordKind) -> Generation:
        return Generation(1, kind, COLLECTION, "live", None, None)

    monkeypatch.setattr(SearchIndex, "live", live)
    missing_points = create_autospec(MissingPoints, instance=True)
    missing_points.names.return_value = []
    index = SearchIndex(Any, qdrant, None, 100, 3, missing_points)  # type: ignore[arg-type]
    async with _busy(qdrant):
        for number in range(ROUNDS):
            documents = [_document(f"{number}-{part}", f"heron round{number}") for part in range(4)]
            await points.upsert_points(qdrant, COLLECTION, documents)
            # Nearly all points that the server missed were written just before the vector of another one.
            await points.add_vectors(qdrant, COLLECTION, [(documents[0], [1.0] * 8)])
            conditions = [field_equals("tags", f"round{number}")]
            found = await index.search(IndexQuery("a", RecordKind.MEMORY, "heron", conditions))
            assert {hit.record_id for hit in found.hits} == {doc.record_id for doc in documents}, number


def _document(record_id: str, text: str) -> IndexDocument:
    filters = {"tags": [text.rpartition(" ")[2]]}
    return IndexDocument("a", RecordKind.MEMORY, record_id, 1, text, text, filters, may_replace=False)


@asynccontextmanager
async def _busy(qdrant: Qdrant) -> AsyncIterator[None]:
    """Let another client write and delete, with thresholds at which the server merges all the time."""
    await collections.create_collection(qdrant, COLLECTION, 8)
    thresholds = {"indexing_threshold": 1, "vacuum_min_vector_number": 100, "deleted_threshold": 0.05}
    body = {"optimizers_config": thresholds | {"flush_interval_sec": 1}}
    await qdrant.call("PATCH", f"collections/{COLLECTION}", body)
    task = asyncio.create_task(_write_and_delete(qdrant))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _write_and_delete(qdrant: Qdrant) -> None:
    draw = random.Random(3)
    for batch in range(1_000_000):
        ids = [1_000_000 + (batch * 200 + n) % 4000 for n in range(200)]
        some = [
            {
                "id": id_,
                "vector": {
                    "bm25": {"indices": draw.sample(range(100, 900), 8), "values": [1.0] * 8},
                    "dense": [draw.gauss(0, 1) for _ in range(8)],
                },
                "payload": {"tenant": "z"},
            }
            for id_ in ids
        ]
        path = f"collections/{COLLECTION}/points"
        await qdrant.call("PUT", f"{path}?wait=true", {"points": some})
        if batch % 7 == 0:
            await qdrant.call("POST", f"{path}/delete?wait=true", {"points": ids[:150]})
