"""The answers of tools: short texts for a language model.

Stored texts stand inside a fence, one record to a line, as in a context: no record can look like another one
or like an instruction of the tool.
"""

from collections.abc import Sequence
from datetime import datetime

from services.gateway import metrics
from shared.foundation import prompt_safety

MAX_LINE_CHARS = 1500
"""A longer record is cut: its id tells where the rest is."""
MAX_ANSWER_CHARS = 12_000
MAX_NAME_CHARS = 200
_CUT = " …"


def listing(header: str, lines: Sequence[str], degraded: Sequence[str] = ()) -> str:
    """Return records under a header, as many as an answer may hold, and what the search did without."""
    shown: list[str] = []
    for line in lines:
        if sum(map(len, shown)) + len(line) > MAX_ANSWER_CHARS:
            break
        shown.append(line)
    left_out = len(lines) - len(shown)
    more = [f"({left_out} more: ask for fewer, or more precisely.)"] if left_out else []
    return "\n".join([prompt_safety.fence(header, shown), *more, *incomplete(degraded)])


def incomplete(degraded: Sequence[str]) -> list[str]:
    """Return the line that says what a search did without, if it did, and count it."""
    metrics.count_degraded(degraded)
    return [f"(Incomplete: unavailable now: {', '.join(degraded)}.)"] if degraded else []


def record_line(label: str, details: str, text: str) -> str:
    """Return `- [label] (details): text` on one line."""
    head = f"- [{prompt_safety.single_line(label)}] ({prompt_safety.single_line(details)})"
    return f"{head}: {shortened_line(text)}"


def shortened_line(text: str) -> str:
    """Return a text on one line, cut if it is long."""
    line = prompt_safety.single_line(text)
    return line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS].rstrip() + _CUT


def name_of(text: str) -> str:
    """Return an id or a key that a model named, on one line, cut if it is none that could exist."""
    return prompt_safety.single_line(text[:MAX_NAME_CHARS]) + (_CUT if len(text) > MAX_NAME_CHARS else "")


def shortened_block(text: str, max_chars: int) -> str:
    """Return the lines of a block that fit, the last one cut, with its fence closed."""
    if len(text) <= max_chars:
        return text
    head = text[:max_chars].rstrip()
    is_open = prompt_safety.OPEN in head and prompt_safety.CLOSE not in head
    return f"{head}{_CUT}\n{prompt_safety.CLOSE}" if is_open else f"{head}{_CUT}"


def count_of(number: int, noun: str, plural: str) -> str:
    """Return `1 memory` or `3 memories`."""
    return f"{number} {noun if number == 1 else plural}"


def day(moment: datetime) -> str:
    """Return the day of a time, in UTC."""
    return f"{moment:%Y-%m-%d}"
