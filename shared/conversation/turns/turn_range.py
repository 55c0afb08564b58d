"""Ranges of turns: the turns of one session with consecutive numbers."""

from collections.abc import Iterable
from typing import NamedTuple

TurnKey = tuple[str, int]


class TurnRange(NamedTuple):
    """The turns of a session from number `first_seq` to `last_seq`."""

    session_id: str
    first_seq: int
    last_seq: int

    def without(self, withdrawn: Iterable["TurnRange"]) -> list["TurnRange"]:
        """Return what is left of this range without others."""
        rest = [self]
        for other in withdrawn:
            rest = [part for item in rest for part in _without_one(item, other)]
        return rest


def _without_one(whole: TurnRange, other: TurnRange) -> list[TurnRange]:
    session_id, first, last = whole
    if other.session_id != session_id or other.first_seq > last or other.last_seq < first:
        return [whole]
    before = TurnRange(session_id, first, other.first_seq - 1)
    after = TurnRange(session_id, other.last_seq + 1, last)
    return [part for part in (before, after) if part.first_seq <= part.last_seq]


def ranges_of(turn_keys: Iterable[TurnKey]) -> list[TurnRange]:
    """Return the ranges of turns given as (session id, seq), in their order. No two of them touch."""
    ranges: list[TurnRange] = []
    for session_id, seq in sorted(set(turn_keys)):
        if ranges and ranges[-1][::2] == (session_id, seq - 1):
            ranges[-1] = ranges[-1]._replace(last_seq=seq)
        else:
            ranges.append(TurnRange(session_id, seq, seq))
    return ranges
