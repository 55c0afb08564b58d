"""The official client of MCP against a gateway in this process."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import Gateway

Connect = Callable[..., AbstractAsyncContextManager[Client]]
ERAS = ("2026-07-28", "legacy")


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """A protocol version: of requests that stand alone, or of those after a handshake."""
    return str(request.param)


@pytest.fixture
def connect(gateway: Gateway, era: str) -> Connect:
    """Return a function that connects a client to `/mcp`: with a key of the gateway, or a given one."""

    @asynccontextmanager
    async def connected(
        key: str | None = None, query: str = "", host: str = "127.0.0.1", **headers: str
    ) -> AsyncIterator[Client]:
        authorization = f"Bearer {key}" if key else gateway.client.headers["authorization"]
        app = gateway.client._transport.app  # type: ignore[attr-defined]
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app),
            headers={"authorization": authorization, **headers},
        ) as http:
            transport = streamable_http_client(f"http://{host}:8700/mcp{query}", http_client=http)
            async with Client(transport, mode=era) as client:
                yield client

    return connected
