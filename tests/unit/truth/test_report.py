"""What became of a text is read off the memories and proposals, and counted against the goals."""

from typing import Any

import pytest

from benchmarks.truth import report, rewritings
from benchmarks.truth.oracle import JudgeUse
from benchmarks.truth.outcome import Ending, Fate, Outcome, Scope
from benchmarks.truth.report import Measured


def _memory(id_: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"id": id_, "content": content, "valid_until": None, "superseded_by": [], **fields}


def test_a_text_is_stored_held_or_refused() -> None:
    scope = Scope([_memory("1", "The user  lives in Vejle.")], [{"id": "p", "text": "Tea."}])
    fates = [scope.fate([text]) for text in ("the user lives in Vejle.", "Tea.", "Coffee.")]
    assert fates == [Fate.STORED, Fate.HELD, Fate.REFUSED]


@pytest.mark.parametrize(
    ("fields", "ending"),
    [
        ({"valid_until": "2026-03-01T00:00:00Z", "superseded_by": ["2"]}, Ending.CLOSED),
        ({"valid_until": "2026-03-01T00:00:00Z", "superseded_by": ["3"]}, Ending.OPEN),
        ({"contested_with": ["2"]}, Ending.CONTESTED),
        ({}, Ending.OPEN),
    ],
)
def test_a_closing_counts_for_the_text_that_made_it(fields: dict[str, Any], ending: Ending) -> None:
    scope = Scope([_memory("1", "old", **fields), _memory("2", "new"), _memory("3", "other")], [])
    assert scope.ending("new", "old") is ending
    assert scope.ending("new", "never stored") is Ending.NOT_POSSIBLE
    assert scope.ending("new", None) is Ending.NONE


def test_the_words_that_a_rewriting_left_out_are_searched_for() -> None:
    assert rewritings.left_out("the blue kettle leaks, sigh", ["The blue kettle leaks."]) == "sigh"
    assert rewritings.left_out("the blue kettle", ["The blue kettle leaks."]) == ""


def _fact(number: int, why: str | None, fate: Fate, lang: str = "en", **fields: Any) -> Outcome:
    return Outcome("facts", f"item-{number}", lang, f"text {number}", why, fate, **fields)


def test_goals_tell_what_is_reached() -> None:
    good = [_fact(number, None, Fate.STORED, "en" if number % 2 else "de") for number in range(50)]
    bad = [_fact(number, "joke", Fate.REFUSED, "en" if number % 2 else "de") for number in range(50)]
    measured = Measured([*good, *bad], JudgeUse(calls=5, claims=100, tokens=20_100))
    reached = {goal.name: goal.is_reached for goal in report.goals_of(measured, is_judged=True)}
    assert reached == {
        "good facts stored: at least 96%": True,
        "bad facts stored: at most 4%": True,
        "wrong closings without a judge: none": None,
        "English and all others, stored: within 7 points": True,
        "calls of the judge per stored fact: at most 0.2": True,
        "its tokens per stored fact: at most 400": False,
        "what a right rewriting left out is found: at least 95%": None,
    }


def test_without_a_judge_a_lost_fact_and_a_wrong_closing_miss_the_goals() -> None:
    outcomes = [
        _fact(1, None, Fate.STORED),
        _fact(2, None, Fate.REFUSED),
        _fact(3, "joke", Fate.STORED, ending=Ending.CLOSED),
    ]
    goals = report.goals_of(Measured(outcomes, None), is_judged=False)
    reached = {goal.name: goal.is_reached for goal in goals}
    assert reached["good facts stored: at least 50%"] is True
    assert reached["good facts neither stored nor held: none"] is False
    assert reached["bad facts stored: at most 10%"] is False
    assert reached["wrong closings without a judge: none"] is False


def test_both_halves_and_each_language_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [_fact(number, None, Fate.STORED, "de") for number in range(20)]
    report.show(Measured([*outcomes, _fact(0, "joke", Fate.HELD)], None))
    printed = capsys.readouterr().out
    for row in ("home: good", "abroad: good", "both: bad", "good, de", "bad, all others"):
        assert f"| {row} " in printed
