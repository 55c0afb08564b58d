"""What every middleware of the gateway has in common."""

from abc import ABC, abstractmethod

from starlette.types import ASGIApp, Receive, Scope, Send


class HttpMiddleware(ABC):
    """An ASGI middleware that handles HTTP requests. It passes on everything else, such as the lifespan."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request, or pass on what is none."""
        handle = self.handle_request if scope["type"] == "http" else self._app
        await handle(scope, receive, send)

    @abstractmethod
    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on to `self._app`."""
