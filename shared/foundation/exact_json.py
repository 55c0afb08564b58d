"""JSON as it was sent: a number keeps its digits, which Python's numbers would round."""

import json
from dataclasses import dataclass
from typing import Any

import orjson

from shared.foundation import errors


@dataclass(frozen=True, slots=True)
class _Number:
    """A number as it is written; None stands for NaN and the infinities, which JSON has not."""

    text: str | None


class ExactJson:
    """Text that is valid JSON. It is parsed when a part of it is asked for."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._parsed: Any = None

    def text_at(self, *path: str | int, field: str) -> str | None:
        """Return the part under these keys and positions as JSON text, or None for null.

        Raises errors.Invalid, which names the field, for what is not JSON or nests too deeply.
        """
        if self._parsed is None:
            self._parsed = json.loads(
                self._content,
                parse_int=_Number,
                parse_float=_Number,
                parse_constant=lambda _: _Number(None),
            )
        part = self._parsed
        for step in path:
            part = part[step]
        try:
            return None if part is None else _dumps(part)
        except orjson.JSONEncodeError:
            raise errors.Invalid(field, "must be JSON, without NaN, and nested at most 250 levels") from None


def _dumps(part: Any) -> str:
    # Otherwise the library writes a number as the object that it is here.
    return orjson.dumps(part, default=_write_number, option=orjson.OPT_PASSTHROUGH_DATACLASS).decode()


def _write_number(value: object) -> orjson.Fragment:
    if not isinstance(value, _Number) or value.text is None:
        raise TypeError
    return orjson.Fragment(value.text)
