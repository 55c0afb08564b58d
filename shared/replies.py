"""Read JSON out of what a model said: past its thoughts, prose and fences, up to where it was cut off."""

import json
import re
from typing import Any

from shared import errors

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"^\s*<think(?:ing)?>", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,]*")


def objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of the JSON array in a reply; an empty list only if it says `[]`.

    The last array that holds objects counts: models think aloud first. A truncated array yields
    the objects that are whole. Raises errors.BadReply when there is no such array.
    """
    spoken = _spoken(text)
    whole = [found for start in _starts(spoken, "[") if (found := _array(spoken, start)) is not None]
    filled = [found for found in whole if found]
    if filled:
        return filled[-1]
    if whole:
        return []
    for start in _starts(spoken, "["):
        cut = _complete_items(spoken, start + 1)
        if cut:
            return cut
    raise errors.BadReply("the reply holds no JSON array of objects")


def _spoken(text: str) -> str:
    rest = _THOUGHT.sub("", text)
    if _OPEN_THOUGHT.match(rest):
        raise errors.BadReply("the reply ends within its thoughts")
    return rest


def _starts(text: str, bracket: str) -> list[int]:
    """Return where arrays may begin, outermost first: what lies within one that was read is skipped."""
    return [match.start() for match in re.finditer(re.escape(bracket), text)][:200]


def _array(text: str, start: int) -> list[dict[str, Any]] | None:
    try:
        value, _ = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    return None


def _complete_items(text: str, position: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    while True:
        position = _end_of_gap(text, position)
        try:
            item, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return items
        if not isinstance(item, dict):
            return items
        items.append(item)


def _end_of_gap(text: str, position: int) -> int:
    gap = _BETWEEN.match(text, position)
    return gap.end() if gap else position


# Strict would refuse the raw line breaks that models like to leave inside strings.
_decoder = json.JSONDecoder(strict=False)
