"""Decide what becomes of the parts of a business context when a person writes its text anew.

A promoted line that still stands in the text keeps its provenance, wherever it stands now. So does one that
was reworded, as long as half of its words are the same: it still says what came from that session, and is to
go with it. Every other line is the person's own. A pure function over plain records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from shared.conversation.scratchpad.near_identical import words_of
from shared.memory.business_context.part import Part

_MIN_SHARED_WORDS = 0.5
"""The share of all words of both lines that is in both."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What is to be written: the new positions and texts of promoted lines, and the parts of the person."""

    kept: Sequence[tuple[Part, int, str]]
    own: Sequence[tuple[int, str]]


def edit(parts: Sequence[Part], text: str) -> Edit:
    """Return how the text is stored; parts that are in neither list are to be deleted."""
    lines = text.split("\n") if text else []
    part_by_line = _match(lines, [part for part in parts if part.is_promoted])
    kept: list[tuple[Part, int, str]] = []
    own: list[tuple[int, str]] = []
    numbered = enumerate(lines)
    groups = groupby(numbered, key=lambda numbered_line: part_by_line.get(numbered_line[0]))
    for position, (part, group) in enumerate(groups):
        part_text = "\n".join(line for _, line in group)
        if part is None:
            own.append((position, part_text))
        else:
            kept.append((part, position, part_text))
    return Edit(kept, own)


def _match(lines: Sequence[str], promoted: Sequence[Part]) -> dict[int, Part]:
    """Return which promoted line each line is, by the number of the line: first those that are the same."""
    part_by_line: dict[int, Part] = {}
    words = [frozenset(words_of(line)) for line in lines]
    for part in promoted:
        number = next(
            (n for n, line in enumerate(lines) if line == part.text and n not in part_by_line), None
        )
        if number is not None:
            part_by_line[number] = part
    kept = {id(part) for part in part_by_line.values()}
    for part in promoted:
        if id(part) in kept:
            continue
        part_words = frozenset(words_of(part.text))
        free = [number for number in range(len(lines)) if number not in part_by_line]
        nearest = max(free, key=lambda number: _shared(words[number], part_words), default=None)
        if nearest is not None and _shared(words[nearest], part_words) >= _MIN_SHARED_WORDS:
            part_by_line[nearest] = part
    return part_by_line


def _shared(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second)
