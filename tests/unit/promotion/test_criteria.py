"""MM2: each criterion has a value, a bound and a reason; the rule joins them."""

import itertools

import pytest

from shared.dreams.promotion import criteria
from shared.dreams.promotion.criteria import Criterion, Score
from shared.search.text.tokenizer import tokenize


@pytest.mark.parametrize(("value", "is_met"), [(None, False), (0.69, False), (0.7, True), (1.0, True)])
def test_salience_is_what_a_model_says(value: float | None, *, is_met: bool) -> None:
    assert criteria.salience(value, "why") == Score(value, is_met, "why")


@pytest.mark.parametrize(
    ("text", "known", "value", "is_met"),
    [
        ("monthly paper invoices", [], 1.0, True),
        ("monthly paper invoices", ["Trains run hourly."], 1.0, True),
        ("monthly paper invoices", ["A monthly train.", "Paper is cheap.", "The invoice."], 0.667, True),
        ("monthly invoices", ["Invoices are paid."], 0.5, True),
        ("monthly paper invoices", ["MONTHLY invoice"], 0.333, False),
        ("monthly paper invoices", ["We send paper invoices monthly, by mail."], 0.0, False),
        ("...", [], 0.0, False),
    ],
)
def test_surprisal_is_the_share_of_words_that_no_single_known_text_has(
    text: str, known: list[str], value: float, *, is_met: bool
) -> None:
    score = criteria.surprisal(text, [frozenset(tokenize(known_text)) for known_text in known])
    assert (score.value, score.is_met) == (value, is_met)


def test_the_reason_of_a_surprisal_counts_words() -> None:
    known = [frozenset(tokenize("Invoices are paid."))]
    reason = criteria.surprisal("monthly invoices", known).reason
    assert reason == "of its 2 words, one known text has 1"
    assert criteria.surprisal("monthly invoices", []).reason == "nothing like it is known"


@pytest.mark.parametrize(("count", "is_met"), [(1, False), (2, False), (3, True), (4, True)])
def test_three_writes_are_frequent(count: int, *, is_met: bool) -> None:
    score = criteria.frequency(count)
    assert (score.value, score.is_met) == (count, is_met)
    assert str(count) in score.reason


def test_only_a_caller_makes_it_explicit() -> None:
    assert criteria.explicit("she said so") == Score(1.0, True, "she said so")
    assert not criteria.explicit(None).is_met


@pytest.mark.parametrize("met", [*itertools.product([False, True], repeat=4)])
def test_a_snippet_qualifies_if_asked_for_or_frequent_or_salient_and_surprising(
    met: tuple[bool, bool, bool, bool],
) -> None:
    salient, surprising, frequent, explicit = met
    scores = {name: Score(None, is_met, "") for name, is_met in zip(Criterion, met, strict=True)}
    assert criteria.qualifies(scores) == (explicit or frequent or (salient and surprising))
