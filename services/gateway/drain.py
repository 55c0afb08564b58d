"""Stop the gateway without failing a request.

After the first signal, `/readyz` answers 503 and every response closes its connection. Requests are
still served for LOCI_GATEWAY_DRAIN seconds, so that load balancers can send new requests elsewhere.
Then it keeps new connections out, answers those that are waiting (backlog.py), stops listening, finishes the
requests that still run, and exits. Stopping to listen at once would fail clients that are about to send on an
open connection. A second signal skips the wait.
A gateway that shares its socket with others (process_group.py) stops with their parent, however that ends. If
it stops alone, the others accept what is waiting.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import FrameType

import uvicorn
from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from services.gateway import backlog
from services.gateway.middleware import HttpMiddleware
from shared.foundation.config import Settings

# Longer than load balancers keep an idle connection. Otherwise they send into one that is being closed.
_KEEP_ALIVE_SECONDS = 75
_FINISH_WITHIN_SECONDS = 20
# For the request of a client that has connected. One that connects ahead of its requests delays the end.
_FIRST_REQUEST_SECONDS = 2.0
_LOOK_EVERY_SECONDS = 0.01
_QUIET_LOOKS = 5  # a connection is between the socket and the server for a turn of the loop, or on its way
# A request has thousands of objects, nearly all of which go without the collector. At Python's default of 700
# it took 7 % of the processor time of a search.
_GC_THRESHOLD = 20_000


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one of several processes: their socket, their parent's id, what to call once ready."""

    listener: socket.socket
    parent: int
    on_ready: Callable[[], None]
    are_all_stopping: Callable[[], bool]

    def has_lost_parent(self) -> bool:
        """Return whether the parent was killed."""
        return os.getppid() != self.parent


def serve(app: FastAPI, settings: Settings, share: Share | None = None) -> None:
    """Serve until a signal stops the process, then drain."""
    server = _Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            # None leaves uvicorn's loggers to our structlog configuration.
            log_config=None,
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_FINISH_WITHIN_SECONDS,
            server_header=False,
        ),
        app,
        settings.gateway_drain,
        share,
    )
    with suppress(KeyboardInterrupt):
        server.run(None if share is None else [share.listener])
    if not server.started:
        sys.exit(3)


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, app: FastAPI, drain_seconds: float, share: Share | None
    ) -> None:
        super().__init__(config)
        self._app = app
        self._drain_seconds = drain_seconds
        self._drained_at: float | None = None
        self._share = share

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What the start made stays: a collection that walked it would take longer than a request.
        # Of the process and not of the app: a test that starts many apps would keep all of them.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        if self._share is not None and self.started:
            self._share.on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._share is not None and sig == signal.SIGINT:
            return  # Ctrl-C reaches all processes of the terminal, and the parent then asks this one to stop
        if self._drained_at is not None or not self.started:
            super().handle_exit(sig, frame)
            return
        self._app.state.draining = True
        self._drained_at = time.monotonic() + self._drain_seconds
        self._captured_signals.append(sig)

    async def on_tick(self, counter: int) -> bool:
        if self._share is not None and self._drained_at is None and self._share.has_lost_parent():
            self.handle_exit(signal.SIGTERM, None)
        is_drained = self._drained_at is not None and time.monotonic() >= self._drained_at
        return await super().on_tick(counter) or is_drained

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._share is None or self._share.has_lost_parent() or self._share.are_all_stopping():
            await self._accept_waiting()
        await super().shutdown(sockets)

    async def _accept_waiting(self) -> None:
        """Keep new connections out, and wait until those that have come have sent their first request."""
        with ExitStack() as copies:
            numbers = [listener.fileno() for server in self.servers for listener in server.sockets]
            listeners = [copies.enter_context(socket.socket(fileno=os.dup(number))) for number in numbers]
            for listener in listeners:
                backlog.keep_out_new(listener)
            quiet_looks, started = 0, time.monotonic()
            last_accepted_at = started
            while quiet_looks < _QUIET_LOOKS and not self.force_exit:
                await asyncio.sleep(_LOOK_EVERY_SECONDS)
                now = time.monotonic()
                if any(backlog.has_waiting(listener) for listener in listeners):
                    last_accepted_at = now
                quiet_looks = quiet_looks + 1 if last_accepted_at < now and self._have_all_asked() else 0
                if now - last_accepted_at > _FIRST_REQUEST_SECONDS or now - started > _FINISH_WITHIN_SECONDS:
                    return

    def _have_all_asked(self) -> bool:
        """Return whether a request has come on each connection."""
        return all(getattr(connection, "cycle", None) for connection in self.server_state.connections)


def is_draining(app: FastAPI) -> bool:
    """Return whether this gateway has received a signal to stop."""
    return getattr(app.state, "draining", False)


class DrainMiddleware(HttpMiddleware):
    """Close each connection with its response while the gateway drains."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start" and is_draining(scope["app"]):
                MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        await self._app(scope, receive, send_and_close)
