"""Passages of the business context: cited by line, and only if a third of the query's words is in them."""

import pytest

from shared.memory.documents.agent_md import MAX_PASSAGES, passages_of

TEXT = "# Inn GmbH\n\nThe office in Kiel\nopens at nine.\n\n\n- Refunds take thirty days.\n"


def test_a_passage_names_its_lines() -> None:
    [passage] = passages_of(TEXT, "when does the office open?", 40)
    assert (passage.text, passage.line_from, passage.line_to) == (
        "The office in Kiel\nopens at nine.",
        3,
        4,
    )
    [passage] = passages_of(TEXT, "refunds", 40)
    assert (passage.line_from, passage.line_to) == (7, 7)


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("refunds", True),
        ("refunds of gift cards", True),
        ("refunds gift cards vouchers", False),
    ],
)
def test_a_passage_has_a_third_of_the_words(query: str, is_found: bool) -> None:  # noqa: FBT001
    assert bool(passages_of(TEXT, query, 1000)) == is_found


def test_the_best_passages_come_first_and_are_few() -> None:
    text = "\n\n".join([f"tea of the year 190{n}" for n in range(5)] + ["tea and tea with tea"])
    found = passages_of(text, "tea", 25)
    assert len(found) == MAX_PASSAGES
    assert found[0].text.startswith("tea and tea")


@pytest.mark.parametrize("text", ["", "\n", " \n\n "])
def test_an_empty_text_has_none(text: str) -> None:
    assert passages_of(text, "tea", 1000) == []
