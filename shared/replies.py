"""Read JSON out of what a model said: past its thoughts, prose and fences, up to where it was cut off."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from shared import errors

Item = dict[str, Any]

_TAG = r"think(?:ing)?>"
_THOUGHT = re.compile(rf"<{_TAG}.*?</{_TAG}", re.DOTALL | re.IGNORECASE)
_CLOSED = re.compile(rf"</{_TAG}", re.IGNORECASE)
_UNCLOSED = re.compile(rf"^[ \t]*<{_TAG}.*", re.DOTALL | re.IGNORECASE | re.MULTILINE)
_BETWEEN = re.compile(r"[\s,]*")
# An object, other than one that does nothing but wrap an empty array.
_OBJECT = re.compile(r'\{\s*"(?!\w*"\s*:\s*\[\s*\]\s*\})')
_MOST_STARTS = 200
"""Brackets that are tried: a reply of nothing but brackets must not be read once for each."""


def objects(text: str) -> list[Item]:
    """Return the objects of the JSON array in a reply; an empty list only if it says `[]`.

    The last array that holds objects counts: models think aloud first. Of an array that is cut
    off or spoilt the objects before that place count; without any array, the objects that stand
    by themselves. Raises errors.BadReply when there is nothing of this.
    """
    said = list(_said(text))
    for spoken in said:
        for read in (_last_array, _before_break, _alone):
            if found := read(spoken):
                return found
    if any(_is_empty(spoken) for spoken in said):
        return []
    raise errors.BadReply("the reply holds no JSON array of objects")


def _said(text: str) -> Iterator[str]:
    """Yield what stands after the thoughts; then, as a fact may speak of such tags, all but thoughts."""
    end = max((tag.end() for tag in _CLOSED.finditer(text)), default=0)
    yield _UNCLOSED.sub("", text[end:])
    if end:
        yield _THOUGHT.sub("", text[:end]) + _UNCLOSED.sub("", text[end:])


def _last_array(text: str) -> list[Item] | None:
    filled = [items for value in _values(text, "[") if (items := _objects_in(value))]
    return filled[-1] if filled else None


def _objects_in(value: Any) -> list[Item]:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        return _objects_in(value[0])
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _before_break(text: str) -> list[Item] | None:
    return next(filter(None, (_whole_items(text, start + 1) for start in _starts(text, "["))), None)


def _whole_items(text: str, position: int) -> list[Item]:
    items: list[Item] = []
    while (read := _read(text, _end_of_gap(text, position))) and isinstance(read[0], dict):
        items.append(read[0])
        position = read[1]
    return items


def _alone(text: str) -> list[Item] | None:
    """Return the objects without an array around them, as of a model that found a single fact."""
    return [value for value in _values(text, "{") if isinstance(value, dict)]


def _is_empty(text: str) -> bool:
    """Tell whether `[]` is said, and not as a part of an object that could not be read."""
    return any(value == [] for value in _values(text, "[")) and not _OBJECT.search(text)


def _values(text: str, bracket: str) -> Iterator[Any]:
    """Yield the values that begin with a bracket, the outermost only."""
    end = 0
    for start in _starts(text, bracket):
        if start >= end and (read := _read(text, start)):
            value, end = read
            yield value


def _starts(text: str, bracket: str) -> list[int]:
    return [match.start() for match, _ in zip(re.finditer(re.escape(bracket), text), range(_MOST_STARTS))]


def _read(text: str, position: int) -> tuple[Any, int] | None:
    try:
        return _decoder.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None


def _end_of_gap(text: str, position: int) -> int:
    gap = _BETWEEN.match(text, position)
    return gap.end() if gap else position


# Strict would refuse the raw line breaks that models like to leave inside strings.
_decoder = json.JSONDecoder(strict=False)
