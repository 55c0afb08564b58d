"""No request that fits the OpenAPI document, or nearly does, gets a 5xx, and every error is a problem.

Schemathesis generates the requests from the document, half of them valid and half invalid. They run in
this process, on the event loop that serves; Hypothesis drives them from a thread. The short form is the
same in every run; the long one generates new requests.
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
from tests.badinput.conftest import CheckedGateway

Operation = Any
# Long enough for a slow machine. A request that hangs is a failure like a 5xx.
_TIMEOUT_SECONDS = 30
schemathesis.serializer.alias("application/x-ndjson", "text/plain")
schemathesis.serializer.alias("application/zip", "application/octet-stream")


async def test_no_generated_request_is_answered_with_a_5xx(gateway: CheckedGateway) -> None:
    await _fuzz(gateway, examples=4, derandomize=True)


@pytest.mark.long
@pytest.mark.skipif("LOCI_LONG" not in os.environ, reason="the long form is run by `make faults`")
async def test_no_generated_request_is_answered_with_a_5xx_in_the_long_run(gateway: CheckedGateway) -> None:
    await _fuzz(gateway, examples=400, derandomize=False)


async def _fuzz(gateway: CheckedGateway, *, examples: int, derandomize: bool) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    send = _case_sender(gateway, asyncio.get_running_loop())
    results: list[Any] = list(schemathesis.openapi.from_dict(document).get_all_operations())
    operations: list[Operation] = [result.ok() for result in results]
    assert len(operations) == sum(map(len, document["paths"].values()))
    request_count = 0
    for operation in operations:
        for mode in _modes(operation):
            request_count += await asyncio.to_thread(
                _send_cases, operation, mode, send, examples, derandomize=derandomize
            )
    assert request_count > len(operations)


def _modes(operation: Operation) -> list[GenerationMode]:
    """Return the modes of an operation. Without parameters and body there are no invalid requests."""
    inputs = [*operation.iter_parameters(), *operation.body]
    return list(GenerationMode) if inputs else [GenerationMode.POSITIVE]


def _case_sender(
    gateway: CheckedGateway, loop: asyncio.AbstractEventLoop
) -> Callable[["Case[Any]"], httpx.Response]:
    """Return a function that sends a case from another thread and returns its response."""

    def send(case: "Case[Any]") -> httpx.Response:
        prepared = requests.Request(**_request_arguments(case)).prepare()
        headers = [(_to_bytes(name), _to_bytes(value)) for name, value in prepared.headers.items()]
        response = gateway.client.request(
            str(prepared.method),
            str(prepared.url),
            headers=headers,
            content=_body_bytes(prepared.body),
            timeout=_TIMEOUT_SECONDS,
        )
        return asyncio.run_coroutine_threadsafe(response, loop).result(_TIMEOUT_SECONDS)

    return send


def _request_arguments(case: "Case[Any]") -> dict[str, Any]:
    names = ("method", "url", "params", "json", "data", "files")
    arguments = case.as_transport_kwargs("http://gateway")
    headers = {
        name: value
        for name, value in (arguments.get("headers") or {}).items()
        if name.lower() != "authorization"
    }
    return {name: arguments[name] for name in names if name in arguments} | {"headers": headers}


def _to_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _body_bytes(body: Any) -> bytes | None:
    return body.encode() if isinstance(body, str) else body


def _send_cases(
    operation: Operation,
    mode: GenerationMode,
    send: Callable[["Case[Any]"], httpx.Response],
    examples: int,
    *,
    derandomize: bool,
) -> int:
    """Send generated cases of one operation, and return their number."""
    request_count = 0

    @settings(
        max_examples=examples,
        derandomize=derandomize,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send_and_check(case: "Case[Any]") -> None:
        nonlocal request_count
        request_count += 1
        _check_response(send(case), case)

    send_and_check()
    return request_count


def _check_response(response: httpx.Response, case: "Case[Any]") -> None:
    assert response.status_code < 500, f"{response.status_code} to {case.as_curl_command()}"
    if case.operation.path.endswith("/batch") and "results" in response.json():
        return  # a batch that stored nothing lists each item's problem
    if response.status_code >= 400:
        problem.parse_problem(response)
