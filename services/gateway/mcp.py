"""The tools over MCP: streamable HTTP, one request at a time, on any replica.

The SDK is imported by the first request to `/mcp`: it takes 23 MB and half a second, which a gateway without
such requests does without. No session is kept between requests: the key and the headers of each one decide,
so a load balancer may send every request to another gateway.

The host of a request must be on a list. A page in a browser could otherwise reach a gateway on the user's own
machine under a name of its own (DNS rebinding).
"""

import asyncio
import importlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from shared.foundation import errors

_SERVER_MODULE = "services.gateway.mcp_server"
ANY_HOST = "*"


class McpSessions(Protocol):
    """What is used of the SDK's StreamableHTTPSessionManager."""

    def run(self) -> AbstractAsyncContextManager[None]:
        """Serve while the context lasts."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""


class McpEndpoint:
    """The SDK's part of a gateway. It begins with its first request and ends with the gateway."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._manager: McpSessions | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closing = asyncio.Event()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        manager = self._manager or await self._begin()
        await manager.handle_request(scope, receive, send)

    async def _begin(self) -> McpSessions:
        async with self._lock:
            if self._manager is None:
                module: Any = await asyncio.to_thread(importlib.import_module, _SERVER_MODULE)
                manager: McpSessions = module.new_session_manager()
                began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                # The context of the manager has to be left by the task that has entered it.
                self._task = asyncio.create_task(self._run(manager, began))
                await began
                self._manager = manager
            return self._manager

    async def _run(self, manager: McpSessions, began: asyncio.Future[None]) -> None:
        try:
            async with manager.run():
                began.set_result(None)
                await self._is_closing.wait()
        except BaseException as error:
            if not began.done():
                began.set_exception(error)
            raise

    async def close(self) -> None:
        """End what has begun."""
        self._is_closing.set()
        if self._task is not None:
            await self._task


class McpResponse(Response):
    """The answer to a request at `/mcp`, which the SDK writes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the SDK answer."""
        endpoint: McpEndpoint = scope["app"].state.mcp
        await endpoint.handle(scope, receive, send)


def require_allowed_host(request: Request, allowed: Sequence[str]) -> None:
    """Raise errors.Forbidden for a host, or the host of an origin, that is not on the list.

    A name on the list stands for itself with every port.
    """
    if ANY_HOST in allowed:
        return
    names = {_name_of(f"//{host}") for host in allowed}
    hosts = [("Host", f"//{request.headers.get('host', '')}")]
    origin = request.headers.get("origin")
    for header, address in [*hosts, *([("Origin", origin)] if origin is not None else [])]:
        if _name_of(address) not in names:
            raise errors.Forbidden(f"{header}: not one of LOCI_MCP_HOSTS, which are {', '.join(allowed)}")


def _name_of(address: str) -> str | None:
    """Return the host of an address, without its port, or None if it has none."""
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
