"""MM4: whether a situation is like a described one is a yes or a no."""

import pytest

from shared.memory.preferences.likeness import is_alike
from shared.search.floor import Floor

FLOOR = Floor(0.4, is_learnt=True)
DESCRIPTION = "The user asks for the quarterly report of the board."
LONG_DESCRIPTION = "a quarterly report on revenue, costs and staff for the board"


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        ("Write the quarterly report, please.", True),
        (
            "The board wants to see how the quarter went: a long report with all figures is due.",
            True,
        ),
        ("report", True),
        ("The user asks for the weather.", False),
        ("Write a report about our tennis club and its members.", False),
        ("?!", False),
    ],
)
def test_without_a_cosine_half_of_the_words_of_the_shorter_text_decide(
    situation: str, *, expected: bool
) -> None:
    assert is_alike(situation, DESCRIPTION, None, None) is expected


@pytest.mark.parametrize(
    ("situation", "cosine", "floor", "expected"),
    [
        ("The directors meet.", 0.5, FLOOR, True),
        ("The directors meet.", 0.49, FLOOR, False),
        ("The directors meet.", 0.6, Floor(0.7, is_learnt=True), False),
        ("The board and its directors report on the weather of today.", 0.41, FLOOR, True),
        ("The board and its directors report on the weather of today.", 0.39, FLOOR, False),
        ("The directors meet.", 0.9, None, False),
    ],
)
def test_a_cosine_above_that_of_unrelated_texts_decides_alone_or_with_fewer_words(
    situation: str, cosine: float, floor: Floor | None, *, expected: bool
) -> None:
    assert is_alike(situation, LONG_DESCRIPTION, cosine, floor) is expected
