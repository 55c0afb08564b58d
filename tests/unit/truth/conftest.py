"""The made-up data as a file and as it is read."""

import json
from pathlib import Path

import pytest

from benchmarks.truth import data
from benchmarks.truth.data import TruthData
from tests.unit.truth import labelled


@pytest.fixture
def truth_file(tmp_path: Path) -> Path:
    """Return the path of the made-up data."""
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(labelled.content()), encoding="utf-8")
    return path


@pytest.fixture
def truth_data(truth_file: Path) -> TruthData:
    """Return the made-up data."""
    return data.read(truth_file)
