"""Let a write wait until search finds what it wrote: `?wait=searchable&timeout_seconds=10`.

A route that takes these parameters has `WAITS` among its dependencies, and knows nothing else of it. The
middleware holds the response back. If time runs out first, the response is a 202 with the usual body and
`pending`: how many jobs are left, by stage.
"""

from http import HTTPStatus
from typing import Annotated, Any, Literal

import orjson
from fastapi import Depends, Query, Request
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from services.gateway.middleware import HttpMiddleware
from shared.jobs import written_records
from shared.jobs.written_records import WrittenRecords
from shared.platform.resources import Resources

_MAX_SECONDS = 30.0


async def _wait(
    request: Request,
    wait: Annotated[
        Literal["searchable"] | None,
        Query(description="Answer when search finds what was written, in every configured way."),
    ] = None,
    timeout_seconds: Annotated[
        float, Query(gt=0, le=_MAX_SECONDS, description="How long to wait; then the response is a 202.")
    ] = 10.0,
) -> None:
    if wait is not None:
        request.state.wait_seconds = timeout_seconds


WAITS = Depends(_wait)


class WaitMiddleware(HttpMiddleware):
    """Hold back the response to a write that is to wait. All other requests pass."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if b"wait=" not in scope["query_string"]:
            await self._app(scope, receive, send)
            return
        messages: list[Message] = []

        async def hold(message: Message) -> None:
            messages.append(message)

        with written_records.collect() as written:
            await self._app(scope, receive, hold)
        seconds = scope.get("state", {}).get("wait_seconds")
        is_written = bool(messages) and messages[0]["status"] < HTTPStatus.MULTIPLE_CHOICES
        if seconds is not None and is_written:
            messages = await _with_pending(scope["app"].state.resources, messages, written, seconds)
        for message in messages:
            await send(message)


async def _with_pending(
    resources: Resources, messages: list[Message], written: WrittenRecords, seconds: float
) -> list[Message]:
    """Wait, and return the response: as it is, or with what is pending."""
    pending = await written_records.wait_until_searchable(resources.postgres, written, seconds)
    if not pending:
        return messages
    start, *parts = messages
    body: dict[str, Any] = orjson.loads(b"".join(part.get("body", b"") for part in parts))
    content = orjson.dumps(body | {"pending": pending})
    MutableHeaders(raw=start["headers"])["content-length"] = str(len(content))
    start["status"] = HTTPStatus.ACCEPTED
    return [start, {"type": "http.response.body", "body": content, "more_body": False}]
