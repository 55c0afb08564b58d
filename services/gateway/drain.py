"""How a gateway ends without failing a request: it says so first, then refuses, then finishes.

On the first signal `/readyz` turns 503 and every answer closes its connection, while requests are
served as ever: for LOCI_GATEWAY_DRAIN seconds, in which balancers turn elsewhere. Only then it stops
listening, lets the requests end that still run, and closes. To stop listening at once would cut
clients off that are about to send on a connection they have open. A second signal hurries.
"""

import sys
import time
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.foundation.config import Settings

# Longer than balancers keep an idle connection: else they send into one that is just being closed.
_KEEP_ALIVE = 75
_FINISH_WITHIN = 20


def serve(app: FastAPI, settings: Settings) -> None:
    """Serve until told to stop, then drain."""
    server = _Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            # Its loggers speak through ours.
            log_config=None,
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_FINISH_WITHIN,
            server_header=False,
        ),
        app,
        settings.gateway_drain,
    )
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(3)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: FastAPI, drain: float) -> None:
        super().__init__(config)
        self._app = app
        self._drain = drain
        self._ends_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._ends_at is not None or not self.started:
            super().handle_exit(sig, frame)
            return
        self._app.state.draining = True
        self._ends_at = time.monotonic() + self._drain
        self._captured_signals.append(sig)

    async def on_tick(self, counter: int) -> bool:
        over = self._ends_at is not None and time.monotonic() >= self._ends_at
        return await super().on_tick(counter) or over


def is_draining(app: FastAPI) -> bool:
    """Tell whether this gateway has been told to stop."""
    return getattr(app.state, "draining", False)


class DrainMiddleware:
    """While the gateway drains, close each connection with its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def closed(message: Message) -> None:
            if message["type"] == "http.response.start" and is_draining(scope["app"]):
                MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        await self._app(scope, receive, closed)
