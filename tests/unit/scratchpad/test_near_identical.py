"""Two texts are near-identical if only what changes nothing differs: a repetition is counted, not stored."""

import pytest

from shared.conversation.scratchpad.near_identical import are_near_identical

SAID = "The user prefers short answers in German."


@pytest.mark.parametrize(
    "text",
    [
        SAID,
        "  the USER prefers  short answers\nin german ",
        "User prefer short answer, in German!",
        "- **The user** really prefers “short” answers in German, please.",
    ],
)
def test_case_spaces_punctuation_plurals_and_light_words_do_not_count(text: str) -> None:
    assert are_near_identical(SAID, text)
    assert are_near_identical(text, SAID)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (SAID, "The user prefers no short answers in German."),
        (SAID, "The user preferred short answers in German."),
        (SAID, "The user prefers short answers in French."),
        (SAID, "The user prefers short answers in German?"),
        ("Ada pays Bob.", "Bob pays Ada."),
        ("3 licences", "4 licences"),
        ("minus -5 degrees", "minus 5 degrees"),
        ("version 1.5", "version 15"),
        ("Ada likes C", "Ada likes C++"),
        ("fly to Berlin", "fly from Berlin"),
        ("el año", "el ano"),
        ("a boss", "a bos"),
        ("gas", "ga"),
        ("room v1s", "room v1"),
        ("!!!", "???"),
        ("日本語で話す", "日本語で書く"),
    ],
)
def test_every_other_difference_counts(first: str, second: str) -> None:
    assert not are_near_identical(first, second)


def test_a_plural_has_at_least_three_letters_before_its_s() -> None:
    assert are_near_identical("cats", "cat")


def test_a_text_without_words_is_compared_as_it_is() -> None:
    assert are_near_identical(" ... ", "...")
