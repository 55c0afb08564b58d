"""One tiny model and one encoder for all tests of the local embeddings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.local.embeddings import model
from services.local.embeddings.encoder import Encoder
from tests.unit.local.embeddings import tiny_bert
from tests.unit.local.embeddings.tiny_bert import TinyBert


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyBert:
    """Write a model folder named `tiny`, with its numpy reference."""
    return tiny_bert.write(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder where the session's graphs are cached."""
    return tmp_path_factory.mktemp("graphs")


@pytest.fixture(scope="session")
def encoder(tiny: TinyBert, cache: Path) -> Iterator[Encoder]:
    """Load an encoder of the tiny model."""
    tiny_encoder = Encoder(model.find(tiny.folder), cache, threads=2)
    yield tiny_encoder
    tiny_encoder.close()
