"""Stop the gateway without failing a request.

After the first signal, `/readyz` answers 503 and every response closes its connection. Requests are
still served for LOCI_GATEWAY_DRAIN seconds, so that load balancers can send new requests elsewhere.
Then the server stops listening, finishes the requests that still run, and exits. Stopping to listen
at once would fail clients that are about to send on an open connection. A second signal skips the wait.
A gateway that shares its socket with others (process_group.py) stops with their parent, however that ends.
"""

import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

import uvicorn
from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from services.gateway.middleware import HttpMiddleware
from shared.foundation.config import Settings

# Longer than load balancers keep an idle connection. Otherwise they send into one that is being closed.
_KEEP_ALIVE_SECONDS = 75
_FINISH_WITHIN_SECONDS = 20
# A request has thousands of objects, nearly all of which go without the collector. At Python's default of 700
# it took 7 % of the processor time of a search.
_GC_THRESHOLD = 20_000


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one of several processes: their socket, their parent's id, what to call once ready."""

    listener: socket.socket
    parent: int
    on_ready: Callable[[], None]


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
        if self._share is not None and self._drained_at is None and os.getppid() != self._share.parent:
            self.handle_exit(signal.SIGTERM, None)
        is_drained = self._drained_at is not None and time.monotonic() >= self._drained_at
        return await super().on_tick(counter) or is_drained


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
