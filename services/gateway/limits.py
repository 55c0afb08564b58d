"""Refuse oversized bodies, compressed ones and malformed addresses before a route is matched.

A line break at the end of a path would be dropped when the route is matched, so that the request
would address another record than the one it names. No body is decompressed: what it grows to would
have to be limited too. The framework would call a compressed one no JSON.
"""

from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.types import Message, Receive, Scope, Send

from services.gateway import errors as gateway_errors
from services.gateway.middleware import HttpMiddleware
from services.gateway.responses import JsonResponse
from shared.foundation.errors import Violation
from shared.memory.documents.document import MAX_FILE_BYTES
from shared.memory.skills.skill_zip import MAX_ZIP_BYTES

MAX_BODY_BYTES = 1024 * 1024
MAX_BULK_BODY_BYTES = 32 * 1024 * 1024
MAX_UPLOAD_BODY_BYTES = MAX_FILE_BYTES + 64 * 1024
"""A file, with its title, its source and what separates them."""
_UPLOAD_PATH = "/v1/documents"
_ZIP_PATH = "/v1/skills/import"
_BULK_PATHS = ("/v1/memories/batch", "/v1/memories/import", "/v1/import", "/v1/graph/import", "/v1/batch")


class _TooLarge(BaseException):
    """The body exceeded its limit while it was read."""


class LimitMiddleware(HttpMiddleware):
    """Refuse bodies over the limit. Bytes are counted as they arrive, because headers may be wrong."""

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
        await self._count_bytes(scope, receive, send, limit)

    async def _count_bytes(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        received_bytes, has_started = 0, False

        async def receive_counted() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > limit:
                raise _TooLarge
            return message

        async def note_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive_counted, note_start)
        except _TooLarge:
            if has_started:
                raise
            await _too_large_response(limit)(scope, receive, send)


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
