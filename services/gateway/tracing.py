"""Request ids and traces: bound to every log line of a request and returned with its response.

`X-Request-Id` identifies one request in logs and in the response; a client may choose it. The trace
of the client's `traceparent` (W3C Trace Context) is continued if there is one. A span has the name of
the route's template, because a path holds keys and ids of callers.
"""

import re
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from services.gateway.middleware import HttpMiddleware
from shared.infra.telemetry import traces
from shared.infra.telemetry.span import HEADER

_REQUEST_ID = "x-request-id"
_PROBES = {"/healthz", "/readyz", "/metrics"}
_VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class TracingMiddleware(HttpMiddleware):
    """Bind the ids of each request to its logs, return the request id, and record one span."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _valid_request_id(headers.get(_REQUEST_ID)) or uuid4().hex

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[_REQUEST_ID] = request_id
                span.set_attributes(**{"http.response.status_code": message["status"]})
            await send(message)

        with traces.span(scope["method"], "server", headers.get(HEADER)) as span:
            log_ids = {"request_id": request_id} | ({"trace_id": span.trace_id} if span.trace_id else {})
            with structlog.contextvars.bound_contextvars(**log_ids):
                try:
                    await self._app(scope, receive, send_with_id)
                finally:
                    route = getattr(scope.get("route"), "path", "unknown")
                    span.rename(f"{scope['method']} {route}")
                    span.set_attributes(**{"http.route": route, "loci.request_id": request_id})


def _valid_request_id(header: str | None) -> str | None:
    return header if header is not None and _VALID_REQUEST_ID.fullmatch(header) else None
