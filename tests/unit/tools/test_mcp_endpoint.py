"""Which hosts a request to `/mcp` may name, and how the SDK's part of a gateway begins and ends."""

import asyncio
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from services.gateway.mcp import McpEndpoint, require_allowed_host
from shared.foundation import errors
from tests.agent import wait_until

ALLOWED = ("127.0.0.1", "localhost", "[::1]", "memory.example.org:443")
Headers = list[tuple[str, str]]


def request_with(headers: Headers) -> Request:
    """Return a request with these headers and no others."""
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return Request({"type": "http", "method": "POST", "path": "/mcp", "headers": encoded})


HOST = ("host", "localhost:8700")


@pytest.mark.parametrize(
    "headers",
    [
        [HOST],
        [("host", "LOCALHOST")],
        [("host", "[::1]:8700")],
        [("host", "memory.example.org")],
        [HOST, ("origin", "http://127.0.0.1:3000")],
        [HOST, ("origin", "https://memory.example.org")],
        [HOST, ("origin", "vscode-webview://localhost")],
    ],
)
def test_a_host_and_an_origin_of_the_list_are_allowed_with_any_port(headers: Headers) -> None:
    require_allowed_host(request_with(headers), ALLOWED)


REFUSED: list[Headers] = [
    [],
    [("host", "")],
    [("host", "evil.com")],
    [("host", "localhost/@evil.com")],
    [("host", "evil.com@localhost")],
    [("host", "localhost.evil.com")],
    [HOST, ("host", "evil.com")],
    [("host", "evil.com"), HOST],
    [HOST, ("origin", "http://evil.com")],
    [HOST, ("origin", "http://localhost/@evil.com")],
    [HOST, ("origin", "http://localhost@evil.com")],
    [HOST, ("origin", "null")],
    [HOST, ("origin", "")],
    [HOST, ("origin", "http://localhost"), ("origin", "http://evil.com")],
]


@pytest.mark.parametrize("headers", REFUSED)
def test_another_host_or_origin_is_refused_by_the_name_of_the_setting(headers: Headers) -> None:
    with pytest.raises(errors.Forbidden, match="LOCI_MCP_HOSTS"):
        require_allowed_host(request_with(headers), ALLOWED)


@pytest.mark.parametrize("headers", REFUSED)
def test_every_host_is_allowed_where_the_list_says_so(headers: Headers) -> None:
    require_allowed_host(request_with(headers), ("*",))


class Sessions:
    """As the SDK's part: what fails in its group of tasks ends all of it."""

    begins = asyncio.Event()
    begun: int = 0

    def __init__(self) -> None:
        self.failure, self.has_ended = asyncio.Event(), False
        Sessions.begun += 1

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve until the end or the failure."""
        await self.begins.wait()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._fail())
            yield
            task.cancel()
        self.has_ended = True

    async def _fail(self) -> None:
        await self.failure.wait()
        raise RuntimeError("the SDK failed")

    async def handle_request(self, scope: Scope, _receive: Receive, _send: Send) -> None:
        """Answer."""
        scope["answered_by"] = self


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The module that is imported by the first request."""
    module = SimpleNamespace(new_session_manager=Sessions)
    monkeypatch.setattr(importlib, "import_module", lambda _: module)
    monkeypatch.setattr(Sessions, "begins", asyncio.Event())
    monkeypatch.setattr(Sessions, "begun", 0)
    Sessions.begins.set()
    return module


async def answered_by(endpoint: McpEndpoint) -> Sessions:
    """Send a request, and return what answered it."""
    scope: dict[str, Any] = {}
    await endpoint.handle(scope, None, None)  # type: ignore[arg-type]
    sessions: Sessions = scope["answered_by"]
    return sessions


@pytest.mark.usefixtures("sdk")
async def test_what_the_first_request_has_begun_answers_all_and_ends_with_the_gateway() -> None:
    endpoint = McpEndpoint()
    first, *others = await asyncio.gather(*[answered_by(endpoint) for _ in range(3)])
    assert others == [first, first]
    await endpoint.close()
    assert first.has_ended


@pytest.mark.usefixtures("sdk")
async def test_after_a_failure_of_the_sdk_the_next_request_begins_it_again() -> None:
    endpoint = McpEndpoint()

    async def has_ended() -> bool:
        return endpoint._has_ended()

    for number in (1, 2, 3):
        sessions = await answered_by(endpoint)
        assert Sessions.begun == number
        sessions.failure.set()
        await wait_until(has_ended)
    await endpoint.close()


async def test_after_a_beginning_that_failed_the_next_request_tries_again(sdk: SimpleNamespace) -> None:
    endpoint, working = McpEndpoint(), sdk.new_session_manager

    def fail() -> None:
        raise RuntimeError("no memory left")

    sdk.new_session_manager = fail
    with pytest.raises(RuntimeError, match="no memory left"):
        await answered_by(endpoint)
    sdk.new_session_manager = working
    assert await answered_by(endpoint)
    await endpoint.close()


@pytest.mark.usefixtures("sdk")
async def test_a_client_that_goes_away_takes_the_beginning_from_no_other() -> None:
    endpoint = McpEndpoint()
    Sessions.begins.clear()
    leaving, staying = (asyncio.create_task(answered_by(endpoint)) for _ in range(2))

    async def has_begun() -> bool:
        return Sessions.begun == 1

    await wait_until(has_begun)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    Sessions.begins.set()
    assert await staying
    assert Sessions.begun == 1
    await endpoint.close()


async def test_a_gateway_that_nobody_asked_by_mcp_has_nothing_to_end() -> None:
    await McpEndpoint().close()
