from collections.abc import Iterator
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models

from services.local import process_record
from services.local.qdrant import Qdrant


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Qdrant]:
    server = Qdrant(tmp_path / "qdrant")
    yield server
    server.kill()


def save(url: str) -> None:
    client = QdrantClient(url=url, check_compatibility=False)
    vectors = {"dense": models.VectorParams(size=2, distance=models.Distance.COSINE)}
    client.create_collection("kept", vectors_config=vectors)
    client.upsert("kept", [models.PointStruct(id=1, vector={"dense": [1.0, 0.0]}, payload={"n": 42})])
    client.close()


def load_payload(url: str) -> object:
    client = QdrantClient(url=url, check_compatibility=False)
    points = client.retrieve("kept", [1])
    client.close()
    return points[0].payload


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_data_and_address_are_kept_after_a_stop_and_a_kill(
    server: Qdrant, tmp_path: Path, ending: str
) -> None:
    url = server.start()
    save(url)
    getattr(server, ending)()
    assert not server.alive
    restarted = Qdrant(tmp_path / "qdrant")
    try:
        assert restarted.start() == url
        assert load_payload(url) == {"n": 42}
    finally:
        restarted.kill()


def test_a_second_server_on_the_same_folder_is_refused(server: Qdrant, tmp_path: Path) -> None:
    server.start()
    with pytest.raises(process_record.StillOwned):
        Qdrant(tmp_path / "qdrant").start()
    assert server.alive
