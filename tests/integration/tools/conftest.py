"""The official client of MCP, and a gateway that listens on a port."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx2
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from services.local import ports
from tests.agent import wait_until
from tests.conftest import Gateway

Connect = Callable[..., AbstractAsyncContextManager[Client]]
ERAS = ("auto", "legacy")


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """How a client connects: by requests that stand alone (2026-07-28), or with a handshake before them."""
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


@pytest.fixture
async def url(gateway: Gateway) -> AsyncIterator[str]:
    """The address of a gateway that listens on a port."""
    async with listening(gateway) as address:
        yield address


@asynccontextmanager
async def listening(gateway: Gateway) -> AsyncIterator[str]:
    """Let a gateway listen on a port, and yield its address."""
    app = gateway.client._transport.app  # type: ignore[attr-defined]
    port = ports.pick_free_port()
    settings = uvicorn.Config(app, port=port, lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(settings)
    task = asyncio.create_task(server.serve())

    async def is_started() -> bool:
        return server.started

    await wait_until(is_started)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    await task
