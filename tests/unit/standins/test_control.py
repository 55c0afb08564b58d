"""A stand-in in another process is programmed and read over HTTP."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.standins.behaviours import Cut, Hang, Reply, Slow, Status, Vectors, read
from tests.standins.wire import Call


def shout(call: Call) -> str:
    """Return the prompt in capitals; the process under test finds this function by its name."""
    return call.prompt.upper()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Yield the base URL of a stand-in in a process of its own."""
    command = [sys.executable, "-m", "tests.standins.models", "--port", "0", "--dimension", "8"]
    command += ["--reply", f"{__name__}:shout"]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        word, url = process.stdout.readline().split()
        assert word == "ready"
        yield url
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0


@pytest.fixture
def control(address: str) -> Iterator[httpx.Client]:
    """Return a client of a stand-in that was reset."""
    with httpx.Client(base_url=address.removesuffix("/v1"), timeout=10) as client:
        client.post("/_control", json={"reset": True, "dimension": 8}).raise_for_status()
        yield client


def _chat(control: httpx.Client) -> httpx.Response:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    return control.post("/v1/chat/completions", json=body)


def _chat_text(control: httpx.Client) -> str:
    return str(_chat(control).json()["choices"][0]["message"]["content"])


def test_a_function_named_at_the_start_makes_the_replies(control: httpx.Client) -> None:
    assert _chat_text(control) == "HI"


def test_plans_and_defaults_are_set_over_http(control: httpx.Client) -> None:
    plan = {"chat_default": "later", "chat_replies": [{"kind": "Status", "code": 429, "retry_after": 2}]}
    assert control.post("/_control", json=plan).json()["pending"] == {"chat": 1, "embeddings": 0}
    assert _chat(control).headers["retry-after"] == "2"
    assert _chat_text(control) == "later"


def test_the_dimension_is_set_over_http(control: httpx.Client) -> None:
    control.post("/_control", json={"dimension": 3})
    answer = control.post("/v1/embeddings", json={"model": "e", "input": "tea"}).json()
    assert len(answer["data"][0]["embedding"]) == 3


def test_calls_are_read_over_http(control: httpx.Client) -> None:
    _chat(control)
    (call,) = control.get("/_control").json()["calls"]
    assert (call["path"], call["behaviour"]) == ("/v1/chat/completions", "Reply")
    assert call["body"]["messages"][0]["content"] == "hi"


def test_json_names_any_behaviour() -> None:
    assert read("text") == Reply("text")
    assert read({"kind": "Cut", "share": 0.1}) == Cut(0.1)
    assert read({"kind": "Slow", "seconds": 1, "then": {"kind": "Status", "code": 500}}) == Slow(
        1, Status(500)
    )
    assert read({"kind": "Vectors", "space": "new"}) == Vectors(space="new")
    assert isinstance(read({"kind": "Hang", "then": "late"}), Hang)
