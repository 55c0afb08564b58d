"""Run the operations of a batch: requests within a request, each through the routes as one of its own would.

An operation passes the same checks of address, size, query, rights and conditions, and is counted under
its route. It saves what a request costs on the wire, and mostly the look-up of the key: that is repeated
after a second, so that a key that is revoked ends the batch. An operation may not choose another key,
contain a batch, wait, or be a request whose body or response is no JSON. The headers that choose for whom
tools act count for an operation as they stand at the batch, unless it has its own.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import unquote

import orjson
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Scope

from services.gateway import errors as gateway_errors
from services.gateway.api_model import ApiModel, example
from services.gateway.dependencies import IN_BATCH, look_up_caller
from services.gateway.limits import MAX_BODY_BYTES, LimitMiddleware
from services.gateway.metrics import MetricsMiddleware
from services.gateway.tool_identity import CHOOSING
from shared.foundation import errors
from shared.foundation.exact_json import ExactJson
from shared.foundation.scope import Caller
from shared.platform.idempotency.idempotent import IdempotencyKey

PATH = "/v1/batch"
_MAX_PATH = 8192
_KEY_SECONDS = 1.0
"""After which the key of a batch is looked up again."""
_REQUEST_HEADERS = ("if-match", "if-none-match", "idempotency-key", *CHOOSING)
_RESPONSE_HEADERS = frozenset({b"allow", b"etag", b"retry-after", b"location", b"www-authenticate"})
_NEW_PER_OPERATION = frozenset({"route", "endpoint", "path_params", "state", "headers", "extensions"})
Run = Callable[["Operation", bytes, str | None], Awaitable[dict[str, Any]]]


class Operation(ApiModel):
    """One request of a batch; `path` may have a query."""

    model_config = example({"method": "GET", "path": "/v1/memories?limit=5"})

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str = Field(pattern=r"^/v1/", max_length=_MAX_PATH)
    body: Any = None
    headers: dict[str, str] = Field(
        default={}, description=f"Some of {', '.join(_REQUEST_HEADERS)}, in any case."
    )

    def content(self, batch: ExactJson, position: int) -> bytes:
        """Return the body as the request wrote it, of which this is the operation at that position."""
        text = None if self.body is None else batch.text_at("operations", position, "body", field="body")
        return (text or "").encode()

    def checked_headers(self) -> dict[str, str]:
        """Return the headers in lower case. Raise errors.Invalid for one that an operation may not have."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not headers.keys() <= set(_REQUEST_HEADERS):
            raise errors.Invalid("headers", f"must be some of {', '.join(_REQUEST_HEADERS)}")
        if len(headers) < len(self.headers):
            raise errors.Invalid("headers", "must be sent once each")
        if not all(value.isprintable() for value in headers.values()):
            raise errors.Invalid("headers", "must be printable")
        # Ids may have any letters; what other headers may hold is ASCII.
        if not all(value.isascii() for name, value in headers.items() if name not in CHOOSING):
            raise errors.Invalid("headers", "must be printable ASCII")
        return headers


def refuse_in_batch(request: Request) -> None:
    """Raise errors.Invalid if this request is an operation of a batch, and its route can't be one."""
    if IN_BATCH not in request.scope:
        return
    if not _speaks_json(request.scope["route"]):
        raise errors.Invalid("path", "can't be an operation of a batch: send it as a request of its own")
    if "wait" in request.query_params:
        raise errors.Invalid("wait", "can't be asked for by an operation of a batch")


def _speaks_json(route: APIRoute) -> bool:
    """Return whether bodies of a route are JSON: a route that streams or takes bytes declares that."""
    has_other_body = "requestBody" in (route.openapi_extra or {})
    response_class: Any = getattr(route.response_class, "value", route.response_class)
    return issubclass(response_class, JSONResponse) and not has_other_body and route.path != PATH


def operation_runner(request: Request, caller: Caller) -> Run:
    """Return the function that runs one operation of this batch and returns its result.

    The function takes its body, and an idempotency key, which the operation gets unless it has one. It
    raises errors.StillRunning if another batch with the key is at this operation: the ones after it must
    not overtake it.
    """
    app: FastAPI = request.app
    chosen = [(name, value) for name, value in request.headers.raw if name.decode("latin-1") in CHOOSING]
    current_caller = _caller_now(request, caller)
    if not hasattr(app.state, "operations"):
        app.state.operations = _operations_app(app)

    async def run(operation: Operation, body: bytes, key: str | None) -> dict[str, Any]:
        try:
            headers = ({"idempotency-key": key} if key else {}) | operation.checked_headers()
            scope = _scope_of(request.scope, operation, headers, len(body))
            scope["headers"] += [(name, value) for name, value in chosen if name.decode() not in headers]
            scope[IN_BATCH] = await current_caller()
            result = await _call(app.state.operations, scope, body)
        except errors.LociError as error:
            problem = gateway_errors.problem_from_error(error)
            return {"status": problem["status"], "body": problem}
        if key == headers.get("idempotency-key") and scope["state"].get("is_still_running"):
            raise errors.StillRunning
        return result

    return run


def _caller_now(request: Request, caller: Caller) -> Callable[[], Awaitable[Caller]]:
    """Return the function that returns the caller of a batch, as its key says from time to time."""
    looked_up_at = time.monotonic()

    async def current_caller() -> Caller:
        nonlocal caller, looked_up_at
        now = time.monotonic()
        if now - looked_up_at >= _KEY_SECONDS:
            caller, looked_up_at = await look_up_caller(request), now
        return caller

    return current_caller


def key_of_operation(key: IdempotencyKey | None, position: int) -> str | None:
    """Return the idempotency key of an operation, from that of its batch and its position."""
    return None if key is None else sha256(f"{position}\x1f{key.key}".encode()).hexdigest()


def _operations_app(app: FastAPI) -> ASGIApp:
    """Return the routes with what surrounds a request, apart from its trace and the draining."""
    routes = ExceptionMiddleware(app.router, handlers=app.exception_handlers)
    return MetricsMiddleware(LimitMiddleware(gateway_errors.UnexpectedErrorMiddleware(routes)))


def _scope_of(batch: Scope, operation: Operation, headers: Mapping[str, str], length: int) -> Scope:
    path, _, query = operation.path.partition("?")
    if length > MAX_BODY_BYTES:
        raise errors.TooLarge("body", f"must be at most {MAX_BODY_BYTES} bytes")
    if "#" in path + query:
        raise errors.Invalid("path", "must not have a fragment")
    content_headers = {"content-type": "application/json", "content-length": str(length)} if length else {}
    raw_headers = [(name.encode(), value.encode()) for name, value in {**headers, **content_headers}.items()]
    return {
        **{name: value for name, value in batch.items() if name not in _NEW_PER_OPERATION},
        "method": operation.method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": raw_headers,
        "state": {},
    }


async def _call(app: ASGIApp, scope: Scope, body: bytes) -> dict[str, Any]:
    """Run one request in this process and return its status, its body and those headers that matter."""
    start: Message = {}
    content: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        elif message["type"] == "http.response.body":
            content.append(message.get("body", b""))

    await app(scope, receive, send)
    headers = dict(start["headers"])
    if content and b"json" not in headers.get(b"content-type", b"json"):
        raise errors.Invalid("path", "can't be an operation of a batch: its response is no JSON")
    shown = {name.decode(): value.decode() for name, value in headers.items() if name in _RESPONSE_HEADERS}
    result = {"status": HTTPStatus(start["status"]), "body": _json_of(b"".join(content))}
    return result | ({"headers": shown} if shown else {})


def _json_of(content: bytes) -> Any:
    # As it is: parsing it only to write it again would cost more than the rest.
    return orjson.Fragment(content) if content else None
