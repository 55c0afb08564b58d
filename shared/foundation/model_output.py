"""Read JSON from a model's reply.

The reply may have thoughts, prose and code fences around the JSON. The JSON must be whole: of a reply
that is cut off or broken nothing is used, because what it lacks would count as done. Only what loses
nothing is mended: commas too many, comments, raw line breaks inside strings.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from shared.foundation import errors

JsonObject = dict[str, Any]

_MAX_BROKEN = 50
"""Values of a reply that are no plain JSON. Each costs a look at all text before it."""

_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**63 - 1

_TAG = r"think(?:ing)?>"
_THOUGHTS = re.compile(rf"(?:\s*<{_TAG}.*?</{_TAG})+", re.DOTALL | re.IGNORECASE)
_CLOSED = re.compile(rf"</{_TAG}", re.IGNORECASE)
_UNCLOSED = re.compile(rf"^[ \t]*<{_TAG}.*", re.DOTALL | re.IGNORECASE | re.MULTILINE)
_STARTS_WITH_JSON = re.compile(r"\s*(?:```\w*\s*)?[\[{]")
# An array of objects or arrays, an object, or the beginning of one at the end of the text. Brackets in
# prose, as in "[1]" and "{x}", are neither.
_JSON_START = re.compile(r"\[\s*(?=[\[{\]]|\Z)|\{\s*(?=[\"}]|\Z)")
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_BRACKET_OR_STRING = re.compile(rf'{_STRING}|["\[\]{{}}]', re.DOTALL)
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.{{0,500}}?\*/", re.DOTALL)
_NEEDLESS_COMMA = re.compile(rf"({_STRING})|,(?=\s*[\]}}])", re.DOTALL)


def parse_objects(text: str) -> list[JsonObject]:
    """Return the objects of the JSON array in a reply; the list is empty only if the reply says `[]`.

    The last array with objects counts, because models often write drafts first. If there is no array, the
    objects outside of any array count. Raises errors.CutOffReply if the JSON does not close, and
    errors.InvalidModelReply if it is broken or if there is none.
    """
    values = _parse_values(text)
    listed = _last_listed(values)
    if listed:
        return listed
    objects = [value for value in values if isinstance(value, dict) and value and not _is_empty(value)]
    if objects or listed is not None:
        return objects
    raise errors.InvalidModelReply("the reply holds no JSON array of objects")


def parse_object(text: str, *names: str) -> JsonObject:
    """Return the JSON object of a reply: the last one with a non-empty value under one of `names`.

    Without names, any object counts. With names, `{}` is no such object: it does not say that there is
    nothing to do. Raises errors.CutOffReply if the JSON does not close, and errors.InvalidModelReply if it
    is broken or if the reply has no such object.
    """
    objects = [item for value in _parse_values(text) for item in _objects_of(value)]
    candidates = [item for item in objects if not names or not item.keys().isdisjoint(names)]
    non_empty = [item for item in candidates if any(item.get(name) for name in names or item)]
    if not candidates:
        raise errors.InvalidModelReply("the reply holds no JSON object of the kind that was asked for")
    return (non_empty or candidates)[-1]


def parse_listed_objects(text: str, *names: str) -> list[JsonObject]:
    """Return the objects listed under one of `names` in the reply's object, or in a plain array.

    Raises errors.CutOffReply if the JSON does not close, and errors.InvalidModelReply if it is broken or if
    the reply has no such list. Nor is one a list of texts: what they say would be lost.
    """
    try:
        parsed = parse_object(text, *names)
    except errors.CutOffReply:
        raise
    except errors.InvalidModelReply:
        listed = _last_listed(_parse_values(text))
        if listed is None:
            raise
        return listed
    return listed_objects(next((parsed[name] for name in names if parsed.get(name)), []))


def listed_objects(value: Any) -> list[JsonObject]:
    """Return the objects in a list; one object counts as a list of it, and null as an empty one.

    Raises errors.InvalidModelReply for a value that is no list, and for a list of other things: it does not
    say that there is nothing.
    """
    items = [value] if isinstance(value, dict) and value else value or []
    objects = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    if items and not objects:
        raise errors.InvalidModelReply("the reply lists no objects")
    return objects


def parse_text(text: str, name: str) -> str:
    """Return the text under `name` in the JSON object of a reply, or the whole reply if it holds no JSON.

    Raises errors.CutOffReply if the JSON does not close, and errors.InvalidModelReply if it is broken or has
    no such text.
    """
    values = _parse_values(text)
    if not values:
        return _remove_thoughts(text).strip()
    found = parse_object(text, name).get(name)
    if not isinstance(found, str):
        raise errors.InvalidModelReply(f"the reply has no text under '{name}'")
    return found.strip()


def _parse_values(text: str) -> list[Any]:
    """Return the outermost arrays and objects of a reply. A broken one may only be a draft."""
    answer_text = _remove_thoughts(text)
    values: list[Any] = []
    is_broken = False
    for is_whole, value in _read_values(answer_text):
        if is_whole:
            values.append(value)
            is_broken = is_broken and not _objects_of(value)
        else:
            is_broken = True
    if is_broken:
        raise errors.InvalidModelReply("the JSON of the reply is broken")
    if not values and _UNCLOSED.search(text):
        raise errors.CutOffReply("the reply ends within a thought")
    return values


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


def _read_values(text: str) -> Iterator[tuple[bool, Any]]:
    """Yield whether each outermost value is whole, and the value.

    Raises errors.CutOffReply, and errors.InvalidModelReply for very many broken values.
    """
    position, broken_count = 0, 0
    while match := _JSON_START.search(text, position):
        start = match.start()
        try:
            value, position = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = _closing_position(text, start)
            yield _read_mended(text[start:position])
            broken_count += 1
            if broken_count >= _MAX_BROKEN:
                raise errors.InvalidModelReply("the JSON of the reply is broken in many places") from None
        else:
            yield True, value


def _closing_position(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one at `start`. Raises errors.CutOffReply."""
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text, start):
        if match[0] == '"':
            break  # a string that does not end
        if len(match[0]) == 1:
            depth += 1 if match[0] in "[{" else -1
        if depth == 0:
            return match.end()
    raise errors.CutOffReply("the JSON of the reply does not close")


def _read_mended(text: str) -> tuple[bool, Any]:
    without_comments = _COMMENT.sub(lambda match: match[1] or "", text)
    try:
        return True, _decoder.decode(_NEEDLESS_COMMA.sub(lambda match: match[1] or "", without_comments))
    except (ValueError, RecursionError):
        return False, None


def _objects_of(value: Any) -> list[JsonObject]:
    """Return the objects that a value is or lists."""
    if isinstance(value, dict):
        return [value]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return [item for item in value if isinstance(item, dict)]


def _listed_objects(value: Any) -> list[JsonObject]:
    """Return the objects of an array, or of the last array with objects in an object around it."""
    if isinstance(value, list):
        return _objects_of(value)
    lists = [_objects_of(item) for item in value.values() if isinstance(item, list)]
    return next((objects for objects in reversed(lists) if objects), [])


def _last_listed(values: list[Any]) -> list[JsonObject] | None:
    """Return the objects of the last array with some, [] if there is only an empty one, None without any."""
    arrays = [objects for value in values if (objects := _listed_objects(value))]
    if arrays:
        return arrays[-1]
    return [] if any(map(_is_empty, values)) else None


def _is_empty(value: Any) -> bool:
    """Tell whether a value is `[]`, or an object that only wraps one."""
    return value == [] or (isinstance(value, dict) and list(value.values()) == [[]])


def _read_integer(digits: str) -> int:
    """Return an integer within 64 bits: what lies beyond can't be stored as JSON or compared as a float."""
    return min(max(int(digits), _MIN_INTEGER), _MAX_INTEGER)


# A strict decoder would refuse the raw line breaks that models often leave inside strings.
_decoder = json.JSONDecoder(strict=False, parse_int=_read_integer)
