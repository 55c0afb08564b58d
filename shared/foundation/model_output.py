"""Read JSON out of what a model said: past its thoughts, prose and fences, up to where it was cut off."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from shared.foundation import errors

JsonObject = dict[str, Any]

_TAG = r"think(?:ing)?>"
_THOUGHTS = re.compile(rf"(?:\s*<{_TAG}.*?</{_TAG})+", re.DOTALL | re.IGNORECASE)
_CLOSED = re.compile(rf"</{_TAG}", re.IGNORECASE)
_UNCLOSED = re.compile(rf"^[ \t]*<{_TAG}.*", re.DOTALL | re.IGNORECASE | re.MULTILINE)
_JSON_AT_ONCE = re.compile(r"\s*(?:```\w*\s*)?[\[{]")
_BETWEEN = re.compile(r"[\s,]*")
_FIELD = re.compile(r'[\s,]*"(\w+)"\s*:\s*')
_CLOSING = re.compile(r"[\]}]")
# An object, other than one that does nothing but wrap an empty array.
_OBJECT = re.compile(r'\{\s*"(?!\w*"\s*:\s*\[\s*\]\s*\})')
_MOST_STARTS = 200
"""Brackets that are tried: a reply of nothing but brackets must not be read once for each."""


def parse_objects(text: str) -> list[JsonObject]:
    """Return the objects of the JSON array in a reply; an empty list only if it says `[]`.

    The last array that holds objects counts: models think aloud first. Of an array that is cut
    off or spoilt the objects before that place count; without any array, those that stand by
    themselves. Raises errors.BadReply when there is nothing of this.
    """
    spoken = _spoken(text)
    for read in (_last_array, _before_break, _alone):
        if found := read(spoken):
            return found
    if _is_empty(spoken):
        return []
    raise errors.InvalidModelReply("the reply holds no JSON array of objects")


def parse_object(text: str, *names: str) -> JsonObject:
    """Return the JSON object of a reply: the last that tells something under one of `names`.

    Without names any object counts. Of one that is cut off or spoilt, the fields before that place
    count, and of an array there its whole items. Raises errors.BadReply when there is nothing of this.
    """
    read = list(_outermost(_spoken(text)))
    meant = [item for item in read if not item or not names or not item.keys().isdisjoint(names)]
    telling = [item for item in meant if any(item.get(name) for name in names or item)]
    if not meant:
        raise errors.InvalidModelReply("the reply holds no JSON object of the kind that was asked for")
    return (telling or meant)[-1]


def parse_listed_objects(text: str, *names: str) -> list[JsonObject]:
    """Return the objects listed under one of `names` in the reply's object, or in a bare array.

    Raises errors.BadReply when the reply holds neither.
    """
    try:
        told = parse_object(text, *names)
    except errors.InvalidModelReply:
        return parse_objects(text)
    found: Any = next((told[name] for name in names if told.get(name)), [])
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _outermost(text: str) -> Iterator[JsonObject]:
    end = 0
    for start in _starts(text, "{"):
        if start < end:
            continue
        try:
            item, end = _decoder.raw_decode(text, start)
            yield item
        except (ValueError, RecursionError):
            if fields := _whole_fields(text, start + 1):
                yield fields
                return  # what follows are its parts


def _whole_fields(text: str, position: int) -> JsonObject:
    fields: JsonObject = {}
    while field := _FIELD.match(text, position):
        try:
            fields[field[1]], position = _decoder.raw_decode(text, field.end())
        except (ValueError, RecursionError):
            if not text.startswith("[", field.end()):
                return fields
            fields[field[1]], position = _whole_values(text, field.end() + 1)
            if not text.startswith("]", position):
                return fields
            position += 1
    return fields


def _whole_values(text: str, position: int) -> tuple[list[Any], int]:
    """Return the whole items of an array and where they end: at its bracket, or where it breaks."""
    values: list[Any] = []
    while True:
        position = _end_of_gap(text, position)
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return values, position
        values.append(value)


def _spoken(text: str) -> str:
    """Leave thoughts out: some models end them with a tag that they never opened, or never end them."""
    thoughts = _THOUGHTS.match(text)
    rest = text[thoughts.end() :] if thoughts else text
    if _JSON_AT_ONCE.match(rest):
        return rest  # any tag further on is a word of a fact
    end = max((tag.end() for tag in _CLOSED.finditer(rest)), default=0)
    return _UNCLOSED.sub("", rest[end:])


def _last_array(text: str) -> list[JsonObject]:
    filled = [items for _, value in _values(text, "[") if (items := _objects_in(value))]
    return filled[-1] if filled else []


def _objects_in(value: Any) -> list[JsonObject]:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _before_break(text: str) -> list[JsonObject]:
    broken = (start for start, value in _values(text, "[") if value is None)
    return next((items for start in broken if (items := _whole_items(text, start + 1))), [])


def _whole_items(text: str, position: int) -> list[JsonObject]:
    items: list[JsonObject] = []
    while True:
        try:
            item, position = _decoder.raw_decode(text, _end_of_gap(text, position))
        except (ValueError, RecursionError):
            return items
        if not isinstance(item, dict):
            return items
        items.append(item)


def _end_of_gap(text: str, position: int) -> int:
    gap = _BETWEEN.match(text, position)
    return gap.end() if gap else position


def _alone(text: str) -> list[JsonObject]:
    """Return the objects without an array around them, as of a model that found a single fact."""
    found = [value for _, value in _values(text, "{") if value is not None]
    return [item for item in found if list(item.values()) != [[]]]


def _is_empty(text: str) -> bool:
    """Tell whether `[]` is said, and not as a part of an object that could not be read."""
    return any(value == [] for _, value in _values(text, "[")) and _OBJECT.search(text) is None


def _values(text: str, bracket: str) -> Iterator[tuple[int, Any]]:
    """Yield where a value begins and what it is, None if it is broken.

    Parts of a value are not yielded, nor is anything after the start of one that is cut off.
    """
    end = 0
    for start in _starts(text, bracket):
        if start < end:
            continue
        try:
            value, end = _decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            yield start, None
            if error.msg.startswith("Unterminated") or not _CLOSING.search(text, error.pos):
                return
        except (ValueError, RecursionError):
            yield start, None
        else:
            yield start, value


def _starts(text: str, bracket: str) -> list[int]:
    return [match.start() for match in islice(re.finditer(re.escape(bracket), text), _MOST_STARTS)]


# Strict would refuse the raw line breaks that models like to leave inside strings.
_decoder = json.JSONDecoder(strict=False)
