"""FB2: the detector of corrections reaches its floor of precision and recall on turns labelled by hand."""

import json
from pathlib import Path

import pytest

from benchmarks.corrections import score_by_language
from shared.conversation.feedback import detect
from tests.unit.feedback.labelled_turns import Half, read, read_half

_FURTHER_TURNS = [
    json.loads(line)
    for line in Path(__file__).with_name("further_turns.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "it", "pt", "all"])
def test_fb2_the_tuning_half_is_scored_with_high_precision_and_recall(language: str) -> None:
    scores = score_by_language(read_half(Half.TUNING))
    assert scores[language].precision >= 0.95
    assert scores[language].recall >= 0.95


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "all"])
def test_fb2_the_held_out_half_is_scored_with_high_precision_and_recall(language: str) -> None:
    """Italian and Portuguese have so few turns there that a single mistake is more than a tenth.

    If this fails, look for the cause in the tuning half. No phrase is added for a turn of this half.
    """
    scores = score_by_language(read_half(Half.HELD_OUT))
    assert scores[language].precision >= 0.9
    assert scores[language].recall >= 0.8


def test_further_turns_are_scored_with_high_precision_and_recall() -> None:
    """These turns carry no language; some of them are known to be judged wrongly."""
    results = [
        (turn["label"] == "correction", detect.is_correction(turn["text"], turn.get("previous")))
        for turn in _FURTHER_TURNS
    ]
    right, wrong = results.count((True, True)), results.count((False, True))
    assert right / (right + wrong) >= 0.97
    assert right / (right + results.count((True, False))) >= 0.92


def test_the_turn_before_is_only_left_unread_where_it_changes_nothing() -> None:
    unread = [turn for turn in read() if not detect.needs_previous(turn.text, detect.score(turn.text))]
    assert unread
    previous_texts = sorted({turn.previous for turn in read() if turn.previous})[::30]
    for turn in unread:
        own_statement = f"I see: {turn.text}"
        scores = {detect.score(turn.text, previous) for previous in [own_statement, *previous_texts]}
        assert scores == {detect.score(turn.text)}


@pytest.mark.parametrize(
    ("question", "statement", "text"),
    [
        ("Is the table for three?", "I have booked a table for three.", "No, two adults."),
        (
            "Wohnen Sie in München?",
            "Da Sie in München wohnen, kommt er am Montag.",
            "Nein, ich wohne in Kiel.",
        ),
        ("¿Sale desde Málaga?", "He reservado el vuelo desde Málaga.", "No, desde Sevilla."),
        ("Est-ce pour vous ?", "J'ai réservé la chambre pour vous.", "Non, pour ma femme."),
        ("Do you want salt?", "Add five spoons of salt to the soup.", "No salt in this soup."),
        ("Which total do you see?", "The total is 35 euros.", "The total is 40 euros."),
    ],
)
def test_what_answers_a_question_corrects_a_statement(question: str, statement: str, text: str) -> None:
    assert not detect.is_correction(text, question)
    assert detect.is_correction(text, statement)


def test_an_answer_about_the_user_himself_is_no_correction_where_the_turn_before_is_not_known() -> None:
    for text in (
        "No, I live in Berlin",
        "Nein, ich wohne in Berlin.",
        "No, vivo en Madrid.",
        "Não, moro em Faro.",
    ):
        assert not detect.is_correction(text)


def test_what_limits_an_answer_is_no_correction_where_the_turn_before_is_not_known() -> None:
    for text in ("No, only the phone.", "Nein, nur ein Koffer.", "No, solo una maleta."):
        assert not detect.is_correction(text)


def test_a_user_who_corrects_himself_corrects_nobody_else() -> None:
    for text in (
        "Oops, my mistake: that's wrong.",
        "Mein Fehler, das ist falsch.",
        "Error mío, eso está mal.",
    ):
        assert not detect.is_correction(text)


def test_a_statement_about_one_thing_does_not_deny_another() -> None:
    statement = "I have booked the flight to Oslo."
    assert detect.is_correction("My daughter never flies to Oslo.", statement)
    assert not detect.is_correction("My daughter never eats fish.", statement)
    assert not detect.is_correction("I don't know Oslo.", statement)
