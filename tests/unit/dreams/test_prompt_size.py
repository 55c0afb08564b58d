"""Prompts keep to a number of tokens, and nothing that is asked about is lost."""

from hypothesis import given
from hypothesis import strategies as st

from shared.dreams.runs import prompt_size


@given(st.lists(st.integers(1, 50)), st.integers(1, 60))
def test_parts_hold_every_item_in_order_and_only_a_single_item_is_over_the_limit(
    sizes: list[int], limit: int
) -> None:
    parts = prompt_size.split(sizes, lambda size: size, limit)
    assert [item for part in parts for item in part] == sizes
    assert all(part and (sum(part) <= limit or len(part) == 1) for part in parts)


@given(st.text(), st.integers(10, 50))
def test_a_shortened_text_keeps_to_the_limit(text: str, limit: int) -> None:
    shortened = prompt_size.shorten(text, limit)
    assert prompt_size.tokens_of(shortened) <= limit
    assert shortened == text or shortened.endswith("[shortened]")


def test_fitting_lines_are_the_first_ones() -> None:
    assert prompt_size.fitting(["aaaaaa", "bbbbbb", "cccccc"], 6) == ["aaaaaa", "bbbbbb"]
    assert prompt_size.fitting(["aaaaaa"], 0) == []
