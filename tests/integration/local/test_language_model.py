"""`loci serve-model` starts, checks, restarts and stops the server of a language model."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest

from services.local import ports
from tests.integration.local import llama_server

_SECONDS = 30.0


@contextmanager
def serving(data_dir: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run the command until it is ready; yield its process and the address that it prints."""
    with _start(data_dir, *arguments) as process:
        try:
            yield process, _read_line(process.stdout).split()[1]
        finally:
            process.terminate()
            process.wait(_SECONDS)


def _start(data_dir: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "services.cli", "serve-model", *arguments]
    environment = os.environ | {"LOCI_DATA_DIR": str(data_dir), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, bufsize=0
    )


def _read_line(stream: IO[bytes] | None) -> str:
    assert stream is not None
    assert select.select([stream], [], [], _SECONDS)[0], "no line was printed in time"
    return stream.readline().decode()


def _read_until(stream: IO[bytes] | None, words: str) -> str:
    while words not in (line := _read_line(stream)):
        assert line, f"the output ended before {words!r}"
    return line


def _fail(data_dir: Path, *arguments: str) -> str:
    """Run the command, which must fail, and return what it says."""
    with _start(data_dir, *arguments) as process:
        stdout, stderr = process.communicate(timeout=_SECONDS)
    assert (process.returncode, stdout) == (1, b"")
    return stderr.decode()


def _ask(address: str) -> str:
    body = {"model": "Tiny", "messages": [{"role": "user", "content": "Hello"}]}
    reply = httpx.post(f"{address}/chat/completions", json=body, timeout=10).raise_for_status().json()
    return str(reply["choices"][0]["message"]["content"])


def test_the_model_answers_on_this_machine_alone_and_a_signal_stops_its_server(tmp_path: Path) -> None:
    weights = llama_server.install(tmp_path)
    port = ports.pick_free_port()
    with serving(tmp_path, "--port", str(port)) as (process, address):
        assert address == f"http://127.0.0.1:{port}/v1"
        assert _ask(address) == "message 2", "the first message was the check"
        hint = _read_line(process.stderr)
        assert f"LOCI_LLM_BASE_URL={address} LOCI_LLM_MODEL=Tiny" in hint
        process.send_signal(signal.SIGTERM)
        assert process.wait(_SECONDS) == 0
        assert ports.is_free(port)
    params = json.loads(weights.with_name("params.json").read_text())
    assert (params["model"], params["model_alias"]) == ({"path": str(weights)}, ["Tiny"])
    assert (params["hostnames"], params["port"]) == (["127.0.0.1"], port)
    assert params["offline"], "the server must fetch nothing by itself"
    assert params["n_ctx"] > params["n_parallel"] > 1


def test_a_server_that_does_not_answer_yet_is_not_ready(tmp_path: Path) -> None:
    llama_server.install(tmp_path, "late")
    with serving(tmp_path, "--port", "0") as (_, address):
        assert _ask(address) == "message 4"


def test_a_server_that_died_is_started_again_on_its_port(tmp_path: Path) -> None:
    llama_server.install(tmp_path)
    with serving(tmp_path, "--port", "0") as (process, address):
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(f"{address.removesuffix('/v1')}/die", json={})
        assert "language model died" in _read_until(process.stderr, "died")
        _read_until(process.stderr, "language model was started again")
        assert _ask(address) == "message 2"


def test_weights_that_the_server_refuses_are_reported_with_its_words(tmp_path: Path) -> None:
    weights = llama_server.install(tmp_path)
    other = tmp_path / "other.gguf"
    other.write_text("fails")
    said = _fail(tmp_path, "--port", "0", "--model", str(other))
    assert "language model ended at once (exit code 1)" in said
    assert "these are no weights" in said
    assert not weights.with_name("params.json").exists(), "the other weights were served"


def test_without_a_model_the_command_says_how_to_get_one(tmp_path: Path) -> None:
    said = _fail(tmp_path)
    assert "run `make local-model`" in said
    assert len(said.splitlines()) == 1


def test_a_port_in_use_is_reported_with_the_option_that_names_another(tmp_path: Path) -> None:
    llama_server.install(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        said = _fail(tmp_path, "--port", str(port))
    assert said == f"loci: port {port} is in use by another process: choose another with --port\n"
