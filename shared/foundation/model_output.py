"""Read JSON from a model's reply.

The reply may have thoughts, prose and code fences around the JSON, and the JSON may be cut off or
broken. Whatever is complete before the break is used, because a repeated call costs money.
"""

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
_STARTS_WITH_JSON = re.compile(r"\s*(?:```\w*\s*)?[\[{]")
_SEPARATORS = re.compile(r"[\s,]*")
_FIELD = re.compile(r'[\s,]*"(\w+)"\s*:\s*')
_CLOSING = re.compile(r"[\]}]")
# Matches an object, except one that only wraps an empty array.
_OBJECT = re.compile(r'\{\s*"(?!\w*"\s*:\s*\[\s*\]\s*\})')
_MAX_STARTS = 200
"""Brackets at which parsing is tried. Without a limit, a reply of brackets alone takes quadratic time."""


def parse_objects(text: str) -> list[JsonObject]:
    """Return the objects of the JSON array in a reply; the list is empty only if the reply says `[]`.

    The last array with objects counts, because models often write drafts first. If that array is cut
    off or broken, its objects before the break count. If there is no array, the objects outside of any
    array count. Raises errors.InvalidModelReply if the reply has none of these.
    """
    answer_text = _remove_thoughts(text)
    for parse in (_parse_last_array, _parse_broken_array, _parse_objects_without_array):
        if objects := parse(answer_text):
            return objects
    if _is_empty_array(answer_text):
        return []
    raise errors.InvalidModelReply("the reply holds no JSON array of objects")


def parse_object(text: str, *names: str) -> JsonObject:
    """Return the JSON object of a reply: the last one with a non-empty value under one of `names`.

    Without names, any object counts. If the object is cut off or broken, its fields before the break
    count; if the break is inside an array, so do the complete items of that array. Raises
    errors.InvalidModelReply if the reply has no such object.
    """
    objects = list(_outermost_objects(_remove_thoughts(text)))
    candidates = [item for item in objects if not item or not names or not item.keys().isdisjoint(names)]
    non_empty = [item for item in candidates if any(item.get(name) for name in names or item)]
    if not candidates:
        raise errors.InvalidModelReply("the reply holds no JSON object of the kind that was asked for")
    return (non_empty or candidates)[-1]


def parse_listed_objects(text: str, *names: str) -> list[JsonObject]:
    """Return the objects listed under one of `names` in the reply's object, or in a plain array.

    Raises errors.InvalidModelReply if the reply has neither.
    """
    try:
        parsed = parse_object(text, *names)
    except errors.InvalidModelReply:
        return parse_objects(text)
    items: Any = next((parsed[name] for name in names if parsed.get(name)), [])
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _outermost_objects(text: str) -> Iterator[JsonObject]:
    end = 0
    for start in _bracket_positions(text, "{"):
        if start < end:
            continue
        try:
            item, end = _decoder.raw_decode(text, start)
            yield item
        except (ValueError, RecursionError):
            if fields := _parse_complete_fields(text, start + 1):
                yield fields
                return  # the brackets that follow belong to this object


def _parse_complete_fields(text: str, position: int) -> JsonObject:
    fields: JsonObject = {}
    while field := _FIELD.match(text, position):
        try:
            fields[field[1]], position = _decoder.raw_decode(text, field.end())
        except (ValueError, RecursionError):
            if not text.startswith("[", field.end()):
                return fields
            fields[field[1]], position = _parse_complete_values(text, field.end() + 1)
            if not text.startswith("]", position):
                return fields
            position += 1
    return fields


def _parse_complete_values(text: str, position: int) -> tuple[list[Any], int]:
    """Return the complete items of an array, and the position of its closing bracket or of the break."""
    values: list[Any] = []
    while True:
        position = _skip_separators(text, position)
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return values, position
        values.append(value)


def _remove_thoughts(text: str) -> str:
    """Return the text without thoughts.

    Some models close a thought that they never opened, or open one and never close it.
    """
    thoughts = _THOUGHTS.match(text)
    rest = text[thoughts.end() :] if thoughts else text
    if _STARTS_WITH_JSON.match(rest):
        return rest  # a tag further on is part of a value
    end = max((tag.end() for tag in _CLOSED.finditer(rest)), default=0)
    return _UNCLOSED.sub("", rest[end:])


def _parse_last_array(text: str) -> list[JsonObject]:
    non_empty = [items for _, value in _values(text, "[") if (items := _objects_in(value))]
    return non_empty[-1] if non_empty else []


def _objects_in(value: Any) -> list[JsonObject]:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _parse_broken_array(text: str) -> list[JsonObject]:
    starts = (start for start, value in _values(text, "[") if value is None)
    return next((items for start in starts if (items := _parse_complete_objects(text, start + 1))), [])


def _parse_complete_objects(text: str, position: int) -> list[JsonObject]:
    items: list[JsonObject] = []
    while True:
        try:
            item, position = _decoder.raw_decode(text, _skip_separators(text, position))
        except (ValueError, RecursionError):
            return items
        if not isinstance(item, dict):
            return items
        items.append(item)


def _skip_separators(text: str, position: int) -> int:
    gap = _SEPARATORS.match(text, position)
    return gap.end() if gap else position


def _parse_objects_without_array(text: str) -> list[JsonObject]:
    """Return the objects outside of any array, as a model writes them that found a single fact."""
    objects = [value for _, value in _values(text, "{") if value is not None]
    return [item for item in objects if list(item.values()) != [[]]]


def _is_empty_array(text: str) -> bool:
    """Tell whether the text says `[]`, and not as a part of an object that could not be parsed."""
    return any(value == [] for _, value in _values(text, "[")) and _OBJECT.search(text) is None


def _values(text: str, bracket: str) -> Iterator[tuple[int, Any]]:
    """Yield the position and the parsed value (None if it is broken) of each outermost value.

    Nothing is yielded after the start of a value that is cut off.
    """
    end = 0
    for start in _bracket_positions(text, bracket):
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


def _bracket_positions(text: str, bracket: str) -> list[int]:
    return [match.start() for match in islice(re.finditer(re.escape(bracket), text), _MAX_STARTS)]


# A strict decoder would refuse the raw line breaks that models often leave inside strings.
_decoder = json.JSONDecoder(strict=False)
