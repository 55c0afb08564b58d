"""Routes that need a key: it and its rights are checked before a byte of the body is read.

The framework reads and parses a body before it calls any dependency. A body of empty lists takes thirty times
its size and many seconds then, and whoever may not send it could stall a gateway with two of them.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from services.gateway.dependencies import authenticate, right_checks


class AuthenticatedRoute(APIRoute):
    """A route whose requests have a caller, who has the right to them, when their body is read."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what authenticates a request and then lets the framework handle it."""
        handle_request = super().get_route_handler()
        checks = right_checks(self.dependant)

        async def authenticate_and_handle(request: Request) -> Response:
            await authenticate(request)
            for check in checks:
                await check(request)
            return await handle_request(request)

        return authenticate_and_handle


def authenticated_router(**options: Any) -> APIRouter:
    """Return a router all of whose routes need a key; `options` are those of the framework's."""
    return APIRouter(route_class=AuthenticatedRoute, **options)
