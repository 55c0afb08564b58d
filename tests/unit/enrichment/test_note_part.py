"""MO1: a note is halved at a border between sentences, and its parts together are the note."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.enrichment.note_part import NotePart

_PIECES = [
    "Ada lives in Kiel",
    ". ",
    "! ",
    "?",
    "\n",
    "\n\n",
    " ",
    "e.g. ",
    "Dr. ",
    "18.30",
    "。",
    "你好",
    '." ',
    "x",
]
texts = st.one_of(st.text(), st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))


@given(texts)
def test_the_halves_together_are_the_text(text: str) -> None:
    if halves := NotePart(text).halves():
        first, second = halves
        assert first.text + second.text == text
        assert first.text.strip()
        assert second.text.strip()
        assert first.text.endswith(second.preceding)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Ada rows. Bob flies.", "Ada rows. "),
        ("Ada rows! Bob flies. Cleo swims, and dives, and sails.", "Ada rows! Bob flies. "),
        ("- Ada rows\n- Bob flies", "- Ada rows\n"),
        ('She said "I row." Bob flies.', 'She said "I row." '),
        ("艾达住在基尔。鲍勃飞行。", "艾达住在基尔。"),
        ("Ada met Dr. Brown. She likes St. Gallen.", "Ada met Dr. Brown. "),
        ("Er mag z. B. Tee. Sie mag Milch.", "Er mag z. B. Tee. "),
        ("It is open until 18.30. It closes early on Fridays.", "It is open until 18.30. "),
    ],
)
def test_a_text_is_halved_between_sentences(text: str, first: str) -> None:
    halves = NotePart(text).halves()
    assert halves is not None
    assert halves[0].text == first


@pytest.mark.parametrize(
    "text", ["", " ", "Ada rows.", "Ada met Dr. Brown", "One, two, three", "a\n", "\n\nx"]
)
def test_a_single_sentence_has_no_halves(text: str) -> None:
    assert NotePart(text).halves() is None


def test_the_second_half_is_shown_what_stands_before_it() -> None:
    halves = NotePart("Ada lives in Kiel. She has a boat there.", "Hello. ").halves()
    assert halves is not None
    assert halves[0].preceding == "Hello. "
    assert halves[1].preceding == "Hello. Ada lives in Kiel. "
