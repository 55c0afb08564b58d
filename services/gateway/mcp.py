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

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from services.gateway.errors import log_unexpected
from shared.foundation import errors
from shared.foundation.host_names import host_of, host_of_origin
from shared.foundation.mcp_settings import ANY_HOST

_SERVER_MODULE = "services.gateway.mcp_server"


class McpSessions(Protocol):
    """What is used of the SDK's StreamableHTTPSessionManager."""

    def run(self) -> AbstractAsyncContextManager[None]:
        """Serve while the context lasts."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""


class McpEndpoint:
    """The SDK's part of a gateway. It begins with its first request and ends with the gateway."""

    def __init__(self) -> None:
        self._start: asyncio.Task[McpSessions] | None = None
        self._run: asyncio.Task[None] | None = None
        self._is_closing = asyncio.Event()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._start is None or self._has_ended():
            self._run = None
            self._start = asyncio.create_task(self._begin())
        # A client that goes away takes the beginning from none of the others that wait for it.
        sessions = await asyncio.shield(self._start)
        await sessions.handle_request(scope, receive, send)

    def _has_ended(self) -> bool:
        """Return whether the SDK's part has failed, which would end every request to come."""
        return self._run is not None and self._run.done()

    async def _begin(self) -> McpSessions:
        try:
            module: Any = await asyncio.to_thread(importlib.import_module, _SERVER_MODULE)
            sessions: McpSessions = module.new_session_manager()
            began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            # The context of the sessions has to be left by the task that has entered it.
            self._run = asyncio.create_task(self._serve(sessions, began))
            await began
        except BaseException:
            self._start = None  # the next request tries again
            raise
        return sessions

    async def _serve(self, sessions: McpSessions, began: asyncio.Future[None]) -> None:
        try:
            async with sessions.run():
                began.set_result(None)
                await self._is_closing.wait()
        except BaseException as error:
            if not began.done():
                began.set_exception(error)
            elif isinstance(error, Exception):
                log_unexpected(error)
            else:
                raise

    async def close(self) -> None:
        """End what has begun."""
        self._is_closing.set()
        if self._start is not None:
            await self._start
        if self._run is not None:
            await self._run


class McpResponse(Response):
    """The answer to a request at `/mcp`, which the SDK writes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the SDK answer."""
        endpoint: McpEndpoint = scope["app"].state.mcp
        await endpoint.handle(scope, receive, send)


def require_allowed_host(request: Request, allowed: Sequence[str]) -> None:
    """Raise errors.Forbidden for a host, or the host of an origin, that is not on the list.

    A name on the list stands for itself with every port. Every `Host` and `Origin` of a request is checked: a
    proxy may go by another one of them than we do.
    """
    if ANY_HOST in allowed:
        return
    names = {host_of(host) for host in allowed} - {None}
    hosts = [("Host", host_of(value)) for value in request.headers.getlist("host") or [""]]
    origins = [("Origin", host_of_origin(value)) for value in request.headers.getlist("origin")]
    for header, name in hosts + origins:
        if name not in names:
            raise errors.Forbidden(f"{header}: not one of LOCI_MCP_HOSTS, which are {', '.join(allowed)}")
