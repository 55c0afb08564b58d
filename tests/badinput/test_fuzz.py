"""Errors: whatever fits the OpenAPI document or just misses it, no answer is a 5xx, every error a problem.

Schemathesis makes the requests from the document, half of them valid and half spoilt. They run in
this process, on the loop that serves; Hypothesis drives them from a thread. The short form is the
same in every run, the long one draws anew.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode

from tests.badinput import problem
from tests.badinput.conftest import Door

Operation = Any
# Long enough for a slow machine; a request that hangs is a fault like a 5xx.
_PATIENCE = 30


async def test_no_generated_request_is_answered_with_a_5xx(door: Door) -> None:
    await _fuzz(door, examples=10, derandomize=True)


@pytest.mark.long
@pytest.mark.skipif("LOCI_LONG" not in os.environ, reason="the long form is run by `make faults`")
async def test_no_generated_request_is_answered_with_a_5xx_in_the_long_run(door: Door) -> None:
    await _fuzz(door, examples=400, derandomize=False)


async def _fuzz(door: Door, *, examples: int, derandomize: bool) -> None:
    document = (await door.client.get("/openapi.json")).json()
    answer = _answering(door, asyncio.get_running_loop())
    found: list[Any] = list(schemathesis.openapi.from_dict(document).get_all_operations())
    operations: list[Operation] = [one.ok() for one in found]
    assert len(operations) == sum(map(len, document["paths"].values()))
    tried = 0
    for operation in operations:
        for mode in _modes(operation):
            tried += await asyncio.to_thread(_try, operation, mode, answer, examples, derandomize=derandomize)
    assert tried > len(operations)


def _modes(operation: Operation) -> list[GenerationMode]:
    """Return how requests can be made: where nothing can be given, nothing can be spoilt."""
    takes = [*operation.iter_parameters(), *operation.body]
    return list(GenerationMode) if takes else [GenerationMode.POSITIVE]


def _answering(door: Door, loop: asyncio.AbstractEventLoop) -> Callable[["Case[Any]"], httpx.Response]:
    """Return what sends a case from another thread and waits for its answer."""

    def answer(case: "Case[Any]") -> httpx.Response:
        made = requests.Request(**_plain(case)).prepare()
        headers = [(_raw(name), _raw(value)) for name, value in made.headers.items()]
        sent = door.client.request(
            str(made.method), str(made.url), headers=headers, content=_bytes(made.body), timeout=_PATIENCE
        )
        return asyncio.run_coroutine_threadsafe(sent, loop).result(_PATIENCE)

    return answer


def _plain(case: "Case[Any]") -> dict[str, Any]:
    kept = ("method", "url", "params", "json", "data", "files")
    made = case.as_transport_kwargs("http://gateway")
    headers = {
        name: value for name, value in (made.get("headers") or {}).items() if name.lower() != "authorization"
    }
    return {name: made[name] for name in kept if name in made} | {"headers": headers}


def _raw(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _bytes(body: Any) -> bytes | None:
    return body.encode() if isinstance(body, str) else body


def _try(
    operation: Operation,
    mode: GenerationMode,
    answer: Callable[["Case[Any]"], httpx.Response],
    examples: int,
    *,
    derandomize: bool,
) -> int:
    """Send some cases of one operation; return how many."""
    tried = 0

    @settings(
        max_examples=examples,
        derandomize=derandomize,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: "Case[Any]") -> None:
        nonlocal tried
        tried += 1
        _judge(answer(case), case)

    send()
    return tried


def _judge(answer: httpx.Response, case: "Case[Any]") -> None:
    assert answer.status_code < 500, f"{answer.status_code} to {case.as_curl_command()}"
    if case.operation.path.endswith("/batch") and "results" in answer.json():
        return  # a batch that stored nothing lists each item's problem
    if answer.status_code >= 400:
        problem.read(answer)
