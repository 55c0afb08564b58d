"""Ids of a request: bound to all that is logged in it, continued from its sender, and answered.

`X-Request-Id` names one request, in logs and in the answer; a sender may choose it. The trace goes
on from the sender's `traceparent` where there is one. A span is named by the route's template: a
path holds keys and ids that others chose.
"""

import re
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.infra.telemetry import traces

_REQUEST_ID = "x-request-id"
_PROBES = {"/healthz", "/readyz", "/metrics"}
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class TracingMiddleware:
    """Bind and answer the ids of each request, and tell of it as one span."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _chosen(headers.get(_REQUEST_ID)) or uuid4().hex

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[_REQUEST_ID] = request_id
                span.set_attributes(**{"http.response.status_code": message["status"]})
            await send(message)

        with traces.span(scope["method"], "server", headers.get(traces.HEADER)) as span:
            bound = {"request_id": request_id} | ({"trace_id": span.trace_id} if span.trace_id else {})
            with structlog.contextvars.bound_contextvars(**bound):
                try:
                    await self._app(scope, receive, named)
                finally:
                    route = getattr(scope.get("route"), "path", "unknown")
                    span.rename(f"{scope['method']} {route}")
                    span.set_attributes(**{"http.route": route, "loci.request_id": request_id})


def _chosen(told: str | None) -> str | None:
    return told if told is not None and _PLAIN.fullmatch(told) else None
