"""JSON responses, and the cursors of paged lists."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, TypeVar

import orjson
from starlette.responses import Response

from services.gateway import metrics
from shared.foundation import errors, validation

T = TypeVar("T")
_FOREIGN_CURSOR = "is not one that a list has returned"


class JsonResponse(Response):
    """A response whose content is already JSON. Skipping the validation by a model saves time."""

    def __init__(
        self,
        content: Any,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> None:
        if isinstance(content, dict):
            metrics.count_degraded(content.get("degraded", ()))
        super().__init__(orjson.dumps(content), int(status_code), headers, media_type)


def page_response(
    rows: Sequence[T], limit: int, to_json: Callable[[T], Any], cursor_key: Callable[[T], Any], **more: Any
) -> JsonResponse:
    """Return one page of `limit` rows. A further row means that there is another page.

    `cursor_key` returns the (time, id) of a row, after which the next page begins. `more` is added to the
    response as it is.
    """
    page_rows = rows[:limit]
    next_cursor = encode_cursor(*cursor_key(page_rows[-1])) if len(rows) > limit else None
    results = [to_json(row) for row in page_rows]
    return JsonResponse({"results": results, "next_cursor": next_cursor, **more})


def encode_cursor(moment: datetime, row_id: str) -> str:
    """Return an opaque cursor for a position in a list."""
    return base64.urlsafe_b64encode(f"{moment.isoformat()} {row_id}".encode()).decode()


def decode_cursor(text: str | None) -> tuple[datetime, str] | None:
    """Return the (time, id) in a cursor. Raise errors.Invalid for a cursor that no list has returned."""
    if text is None:
        return None
    row_id = ""
    try:
        time_text, _, row_id = base64.urlsafe_b64decode(text.encode("ascii")).decode().partition(" ")
        moment = datetime.fromisoformat(time_text)
        cursor_key = (validation.check_time(moment, "cursor"), row_id) if moment.tzinfo else None
    except (ValueError, binascii.Error, errors.Invalid):
        cursor_key = None
    if cursor_key is None or not row_id or "\x00" in row_id:
        raise errors.Invalid("cursor", _FOREIGN_CURSOR)
    return cursor_key


def encode_name_cursor(name: str) -> str:
    """Return an opaque cursor for a position in a list that is sorted by name."""
    return base64.urlsafe_b64encode(f"name {name}".encode()).decode()


def decode_name_cursor(text: str | None) -> str | None:
    """Return the name in a cursor. Raise errors.Invalid for a cursor that no such list has returned."""
    if text is None:
        return None
    try:
        kind, _, name = base64.urlsafe_b64decode(text.encode("ascii")).decode().partition(" ")
    except (ValueError, binascii.Error):
        kind, name = "", ""
    if kind != "name" or "\x00" in name:
        raise errors.Invalid("cursor", _FOREIGN_CURSOR)
    return name


def id_page_response(
    rows: Sequence[T], limit: int, to_json: Callable[[T], Any], id_of: Callable[[T], str]
) -> JsonResponse:
    """Return one page of a list in the order of ids. A further row is the first of the next page."""
    following = [id_of(row) for row in rows[limit:]]
    next_cursor = encode_name_cursor(following[0]) if following else None
    return JsonResponse({"results": [to_json(row) for row in rows[:limit]], "next_cursor": next_cursor})


def receipt_response(receipt: Mapping[str, Any]) -> JsonResponse:
    """Return the receipt of an erasure, with 202 while rows in Postgres are left."""
    is_accepted = receipt["stores"]["postgres"] == "pending"
    return JsonResponse(receipt, HTTPStatus.ACCEPTED if is_accepted else HTTPStatus.OK)
