"""TR1: a quote stands in a text whatever its case, its width of letters and its white space."""

import pytest

from shared.verification import quotes

WIDE = "\N{FULLWIDTH LATIN SMALL LETTER T}ea"
SAID = "We  drink\n\tGreen Tea.\nAlways, in ﬁne cups."


@pytest.mark.parametrize(
    "quote",
    ["green tea", "We drink Green", "  GREEN   TEA.\nalways", f"green {WIDE}", "fine cups", "Tea"],
)
def test_case_width_and_white_space_make_no_difference(quote: str) -> None:
    assert quotes.stands_in(quote, quotes.normalised(SAID))


@pytest.mark.parametrize("quote", ["green coffee", "tea green", "greentea", "drink tea", "Tea, always"])
def test_other_words_another_order_and_other_marks_do(quote: str) -> None:
    assert not quotes.stands_in(quote, quotes.normalised(SAID))


@pytest.mark.parametrize("quote", ["", " ", "\n", ".", ", ", "…"])
def test_a_quote_has_a_letter_or_a_digit(quote: str) -> None:
    assert not quotes.stands_in(quote, quotes.normalised(f"{SAID} … 7"))


@pytest.mark.parametrize("quote", ["7", "茶", "чай"])
def test_a_digit_or_a_letter_of_any_script_is_enough(quote: str) -> None:
    assert quotes.stands_in(quote, quotes.normalised("7 cups of 茶 and чай"))


def test_a_quote_may_be_copied_from_the_line_that_a_prompt_shows() -> None:
    assert quotes.stands_in("tea.⏎always", quotes.normalised("Tea.\nAlways."))


def test_normalising_twice_changes_nothing() -> None:
    once = quotes.normalised(SAID)
    assert quotes.normalised(once) == once
