"""English word forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.search.text.stemmer import stem


@pytest.mark.parametrize(
    "forms",
    [
        "buy buys bought buying",
        "hike hikes hiked hiking",
        "plan plans planned planning",
        "paint paints painted painting",
        "party parties",
        "class classes",
        "box boxes",
        "child children",
        "decide decided deciding",
        "conference conferences",
        "make made making makes",
        "try tries tried trying",
    ],
)
def test_all_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "pair",
    ["plan plane", "car care", "news new", "string sting", "not note", "universe university", "bus bu"],
)
def test_different_words_have_different_stems(pair: str) -> None:
    first, second = pair.split()
    assert stem(first) != stem(second)


@pytest.mark.parametrize("word", ["ai", "gas", "utc", "x2", "c3po", "during"])
def test_short_words_numbers_and_exceptions_are_unchanged(word: str) -> None:
    assert stem(word) == word


@given(st.from_regex(r"[a-z]{1,12}", fullmatch=True))
def test_a_stem_is_never_empty_nor_much_shorter(word: str) -> None:
    assert stem(word)
    assert len(stem(word)) >= min(len(word), 2)
