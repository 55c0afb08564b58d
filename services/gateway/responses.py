"""JSON answers, and the cursors that page through lists."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import orjson
from starlette.responses import Response

from services.gateway import metrics
from shared.foundation import errors, validation

T = TypeVar("T")


class JsonResponse(Response):
    """An answer that is ready: no model is validated on the way out."""

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
    rows: Sequence[T], limit: int, shown: Callable[[T], Any], place: Callable[[T], Any]
) -> JsonResponse:
    """Return one page of `limit` rows; a row more than that says that there is another page.

    `place` gives (time, id) of a row: where the next page begins.
    """
    kept = rows[:limit]
    following = encode_cursor(*place(kept[-1])) if len(rows) > limit else None
    return JsonResponse({"results": [shown(row) for row in kept], "next_cursor": following})


def encode_cursor(moment: datetime, row_id: str) -> str:
    """Return an opaque word for a place in a list."""
    return base64.urlsafe_b64encode(f"{moment.isoformat()} {row_id}".encode()).decode()


def decode_cursor(text: str | None) -> tuple[datetime, str] | None:
    """Read a cursor; raise errors.Invalid for one that we did not give."""
    if text is None:
        return None
    row_id = ""
    try:
        moment, _, row_id = base64.urlsafe_b64decode(text.encode("ascii")).decode().partition(" ")
        told = datetime.fromisoformat(moment)
        place = (validation.check_time(told, "cursor"), row_id) if told.tzinfo else None
    except (ValueError, binascii.Error, errors.Invalid):
        place = None
    if place is None or not row_id or "\x00" in row_id:
        raise errors.Invalid("cursor", "is not one that a list has answered")
    return place
