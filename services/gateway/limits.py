"""Refuse oversized bodies, compressed ones and malformed addresses before a route is matched.

A line break at the end of a path would be dropped when the route is matched, so that the request
would address another record than the one it names. No body is decompressed: what it grows to would
have to be limited too. The framework would call a compressed one no JSON.
"""

from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway import errors as gateway_errors
from services.gateway.body_room import BodyRoom
from services.gateway.middleware import HttpMiddleware
from services.gateway.responses import JsonResponse
from shared.foundation.errors import Violation
from shared.foundation.json_value_count import ValueCounter
from shared.memory.documents.document import MAX_FILE_BYTES
from shared.memory.skills.skill_zip import MAX_ZIP_BYTES

MAX_BODY_BYTES = 1024 * 1024
MAX_BULK_BODY_BYTES = 32 * 1024 * 1024
MAX_UPLOAD_BODY_BYTES = MAX_FILE_BYTES + 64 * 1024
"""A file, with its title, its source and what separates them."""
MAX_JSON_VALUES = 104 * 1024
"""Values of a JSON body: more than one value of working memory has. Each may be an unknown key, or break
a rule of its own, and to parse and check so many takes a quarter of a second."""
_UPLOAD_PATH = "/v1/documents"
_ZIP_PATH = "/v1/skills/import"
_BULK_PATHS = ("/v1/memories/batch", "/v1/memories/import", "/v1/import", "/v1/graph/import", "/v1/batch")
_STREAMED_PATHS = ("/v1/memories/import", "/v1/import", "/v1/graph/import", _UPLOAD_PATH)
"""Their bodies are written to a file as they arrive."""


class LimitMiddleware(HttpMiddleware):
    """Refuse bodies over the limits. They are counted as they arrive, because headers may be wrong.

    Operations of a batch take no room: their bodies are part of another.
    """

    def __init__(self, app: ASGIApp, room: BodyRoom | None = None) -> None:
        super().__init__(app)
        self._room = room

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        violation = _address_violation(scope)
        if violation is not None:
            response = gateway_errors.problem_response(
                HTTPStatus.UNPROCESSABLE_ENTITY, f"{violation.field}: {violation.rule}", [violation]
            )
            await response(scope, receive, send)
            return
        if _is_coded(scope):
            await _coded_response()(scope, receive, send)
            return
        limit = _body_limit(scope["method"], scope["path"])
        if _content_length(scope) > limit:
            await _too_large_response(limit)(scope, receive, send)
            return
        await self._count_body(_Body(scope, receive, limit, self._room), send)

    async def _count_body(self, body: "_Body", send: Send) -> None:
        has_started = False

        async def note_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(body.scope, body.receive, note_start)
        except _Refused as refusal:
            if has_started:
                raise
            await refusal.response(body.scope, body.receive, send)
        finally:
            body.release_room()


class _Refused(BaseException):
    """The body was refused while it was read. The framework would take an Exception for bad JSON."""

    def __init__(self, response: JsonResponse) -> None:
        super().__init__()
        self.response = response


class _Body:
    """The body of a request, which is counted while it is read."""

    def __init__(self, scope: Scope, receive: Receive, limit: int, room: BodyRoom | None) -> None:
        self.scope = scope
        self._receive = receive
        self._limit = limit
        self._room = None if scope["path"] in _STREAMED_PATHS else room
        self._received_bytes = self._taken_bytes = 0
        self._values = ValueCounter()

    async def receive(self) -> Message:
        message = await self._receive()
        if content := message.get("body"):
            self._count(content)
        return message

    def _count(self, content: bytes) -> None:
        self._received_bytes += len(content)
        if self._received_bytes > self._limit:
            raise _Refused(_too_large_response(self._limit))
        if self._room is not None:
            if not self._room.take(len(content), is_bulk=self._limit > MAX_BODY_BYTES):
                raise _Refused(_no_room_response(self._room.size_bytes))
            self._taken_bytes += len(content)
        if _is_json(self.scope):
            self._values.add(content)
            if self._values.count > MAX_JSON_VALUES:
                raise _Refused(_too_many_values_response())

    def release_room(self) -> None:
        if self._room is not None:
            self._room.release(self._taken_bytes)
            self._taken_bytes = 0


def _is_json(scope: Scope) -> bool:
    """Return whether a body is parsed as JSON as a whole: a route that reads lines or bytes declares that."""
    return "requestBody" not in (getattr(scope.get("route"), "openapi_extra", None) or {})


def _address_violation(scope: Scope) -> Violation | None:
    if any(character < " " or character == "\x7f" for character in scope["path"]):
        return Violation("path", "must not hold control characters")
    if "\ufffd" in scope["path"]:  # the server puts it in place of bytes that are not UTF-8
        return Violation("path", "must be UTF-8, without replacement characters")
    if b"%00" in scope["query_string"]:
        return Violation("query", "must not hold a NUL")
    return None if _is_utf8(scope["query_string"]) else Violation("query", "must be UTF-8")


def _is_utf8(quoted: bytes) -> bool:
    try:
        unquote_to_bytes(quoted).decode()
    except UnicodeDecodeError:
        return False
    return True


def _body_limit(method: str, path: str) -> int:
    if method == "POST" and path == _UPLOAD_PATH:
        return MAX_UPLOAD_BODY_BYTES
    if method == "POST" and path == _ZIP_PATH:
        return MAX_ZIP_BYTES
    # The method is checked too, because a key may be named `turns/batch`.
    is_bulk = method == "POST" and (path in _BULK_PATHS or path.endswith("/turns/batch"))
    return MAX_BULK_BODY_BYTES if is_bulk else MAX_BODY_BYTES


def _content_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _is_coded(scope: Scope) -> bool:
    """Return whether a request has a body, and names a coding of it other than `identity`."""
    values = [value for name, value in scope["headers"] if name == b"content-encoding"]
    codings = {coding.strip() for coding in b",".join(values).lower().split(b",")} - {b"", b"identity"}
    has_body = _content_length(scope) > 0 or any(name == b"transfer-encoding" for name, _ in scope["headers"])
    return bool(codings) and has_body


def _coded_response() -> JsonResponse:
    violation = Violation("Content-Encoding", "must not be given: the body is read as it is sent")
    return gateway_errors.problem_response(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        f"{violation.field}: {violation.rule}",
        [violation],
        {"accept-encoding": "identity"},
    )


def _too_large_response(limit: int) -> JsonResponse:
    return gateway_errors.problem_response(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is over the limit of {limit} bytes"
    )


def _too_many_values_response() -> JsonResponse:
    detail = f"the body is over the limit of {MAX_JSON_VALUES} JSON values"
    return gateway_errors.problem_response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)


def _no_room_response(size_bytes: int) -> JsonResponse:
    detail = f"the gateway receives bodies of {size_bytes} bytes already, its limit; try again"
    return gateway_errors.problem_response(
        HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"retry-after": "1"}
    )
