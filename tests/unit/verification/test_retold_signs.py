"""What is in doubt of a retold note, and which answers deny the question before them."""

import pytest

from shared.language import negation
from shared.verification.claim import Evidence
from shared.verification.signs import Sign, SignFinder

NOTE = "The office in Kiel closes at 18:00, the one in Cologne at 18:30. Nobody has a key."


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("The office in Kiel closes at 18:00.", set()),
        ("The office in Bremen closes at 18:00.", {Sign.ADDED}),
        ("The office in Kiel does not close at 18:00.", {Sign.NEGATION}),
        ("People in Kiel rarely work in the evening.", {Sign.OTHER_WORDS}),
        ("The office in Kiel closes at 18:30, the one in Cologne at 18:00.", {Sign.SUBJECT}),
    ],
)
def test_a_retold_note_has_the_signs_of_what_it_changes(text: str, signs: set[Sign]) -> None:
    found = SignFinder().of_retelling(text, [Evidence("note", "2026-01-02", NOTE)], [])
    assert found >= signs
    assert bool(found) is bool(signs)


def test_an_answer_that_denies_is_no_polite_no() -> None:
    assert negation.is_denying_answer("No, not at all.")
    assert not negation.is_denying_answer("No problem, I live in Kiel.")
    assert not negation.is_denying_answer("Yes, in Kiel.")
