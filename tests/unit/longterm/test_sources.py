"""Sources of memories: ranges of turns, and what is left of them when turns are withdrawn."""

import pytest

from shared.conversation.turns.turn_range import TurnRange, ranges_of
from shared.memory.longterm import sources
from shared.memory.longterm.memory import Source


def _source(first: int, last: int, session_id: str = "trip") -> Source:
    return Source(session_id=session_id, seq=last, first_seq=None if first == last else first)


def test_turns_with_consecutive_numbers_are_one_range() -> None:
    keys = [("b", 4), ("a", 3), ("a", 1), ("a", 2), ("a", 2), ("a", 5)]
    assert ranges_of(keys) == [("a", 1, 3), ("a", 5, 5), ("b", 4, 4)]
    assert sources.from_turns(keys) == [_source(1, 3, "a"), _source(5, 5, "a"), _source(4, 4, "b")]


@pytest.mark.parametrize(
    ("withdrawn", "rest"),
    [
        ((1, 1), [(3, 6)]),
        ((3, 3), [(4, 6)]),
        ((6, 9), [(3, 5)]),
        ((4, 4), [(3, 3), (5, 6)]),
        ((3, 6), []),
        ((1, 9), []),
        ((7, 9), [(3, 6)]),
    ],
)
def test_what_is_left_of_a_source_without_some_turns(
    withdrawn: tuple[int, int], rest: list[tuple[int, int]]
) -> None:
    left = sources.without_turns([_source(3, 6)], [TurnRange("trip", *withdrawn)])
    assert left == [_source(*part) for part in rest]


def test_sources_of_other_sessions_and_those_that_name_no_turn_stay() -> None:
    others = [_source(3, 6, "other"), Source(session_id="trip")]
    assert sources.without_turns([*others, _source(3, 3)], [TurnRange("trip", 1, 9)]) == others


def test_the_json_of_a_source_of_one_turn_has_no_first_turn() -> None:
    assert "first_seq" not in _source(3, 3).model_dump()
    assert _source(3, 6).model_dump()["first_seq"] == 3
