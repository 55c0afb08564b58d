"""What is refused before a route sees it: bodies that are too large, addresses that are no plain text.

A line break at the end of a path would be lost in matching its route, and another thing be named.
"""

from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway import errors as problems
from services.gateway.responses import JsonResponse
from shared.foundation.errors import Violation

MAX_BODY = 1024 * 1024
MAX_BULK = 32 * 1024 * 1024
_BULK = ("/v1/memories/batch", "/v1/memories/import")


class _TooLarge(BaseException):
    """The body went over its limit while it was read."""


class LimitMiddleware:
    """Count a body while it streams in, whatever its headers claim."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        unfit = _unfit(scope)
        if unfit is not None:
            told = problems.problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{unfit.field}: {unfit.rule}", [unfit])
            await told(scope, receive, send)
            return
        limit = _limit(scope["method"], scope["path"])
        if _claimed(scope) > limit:
            await _refusal(limit)(scope, receive, send)
            return
        await self._count(scope, receive, send, limit)

    async def _count(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        seen, begun = 0, False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise _TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except _TooLarge:
            if begun:
                raise
            await _refusal(limit)(scope, receive, send)


def _unfit(scope: Scope) -> Violation | None:
    if any(character < " " or character == "\x7f" for character in scope["path"]):
        return Violation("path", "must not hold control characters")
    if "\ufffd" in scope["path"]:  # what the server read in place of bytes that are no text
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


def _limit(method: str, path: str) -> int:
    # By method too: a key may be called `turns/batch`.
    bulk = method == "POST" and (path in _BULK or path.endswith("/turns/batch"))
    return MAX_BULK if bulk else MAX_BODY


def _claimed(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _refusal(limit: int) -> JsonResponse:
    return problems.problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is over the limit of {limit} bytes"
    )
