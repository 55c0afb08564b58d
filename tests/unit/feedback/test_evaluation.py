"""FB2: a model's evaluation of a session is parsed strictly in required fields and tolerantly elsewhere."""

import json
from typing import Any

import pytest

from shared.conversation.feedback.feedback_signal import MAX_DETAIL, SignalType
from shared.dreams.passes import session_evaluation
from shared.dreams.passes.session_evaluation import Evaluation, Quality
from shared.foundation import errors

REPLY: dict[str, Any] = {
    "summary": "Booked a table after first choosing the wrong day",
    "tools_worked_well": ["calendar"],
    "tools_failed_or_missed": ["maps"],
    "corrections_made": 1,
    "overall_quality": "fair",
}


def _parse(**changes: Any) -> Evaluation:
    return session_evaluation.parse(json.dumps(REPLY | changes))


def _evaluation_in(detail: str | None) -> Evaluation:
    """Return the evaluation that a signal's detail contains."""
    return Evaluation.model_validate_json(detail or "")


def test_a_reply_is_parsed_field_by_field() -> None:
    assert _parse() == Evaluation(
        summary="Booked a table after first choosing the wrong day",
        tools_worked_well=("calendar",),
        tools_failed_or_missed=("maps",),
        corrections_made=1,
        overall_quality=Quality.FAIR,
    )


def test_thoughts_fences_and_camel_case_are_accepted() -> None:
    payload = {
        "summary": "x",
        "toolsWorkedWell": ["a"],
        "toolsFailedOrMissed": [],
        "correctionsMade": 2,
        "overallQuality": "Good",
    }
    reply = f'<think>Is it {{"overallQuality": "poor"}}?</think>\nHere:\n```json\n{json.dumps(payload)}\n```'
    evaluation = session_evaluation.parse(reply)
    assert (evaluation.tools_worked_well, evaluation.corrections_made) == (("a",), 2)
    assert evaluation.overall_quality is Quality.GOOD


def test_a_summary_is_shortened_to_its_first_fifteen_words() -> None:
    words = [f"w{number}" for number in range(40)]
    assert _parse(summary="  ".join(words)).summary == " ".join(words[:15])
    assert _parse(summary=" ".join(words[:15])).summary == " ".join(words[:15])
    assert len(_parse(summary="x" * 9000).summary) == 500


@pytest.mark.parametrize(
    "changes",
    [
        {"overall_quality": "unfair"},
        {"overall_quality": "good or fair"},
        {"overall_quality": None},
        {"overall_quality": ["good"]},
        {"summary": " \n"},
        {"summary": None},
    ],
)
def test_a_reply_without_a_summary_or_a_known_quality_is_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidModelReply):
        _parse(**changes)


@pytest.mark.parametrize("reply", ["", "I can't judge that.", "[]", "<think>hm", '"good"'])
def test_a_reply_without_an_object_is_rejected(reply: str) -> None:
    with pytest.raises(errors.InvalidModelReply):
        session_evaluation.parse(reply)


@pytest.mark.parametrize(
    ("reported", "parsed"),
    [(0, 0), (3, 3), (2.9, 2), (-4, 0), (True, 0), ("3", 0), (None, 0), (1e300, 1000), (float("nan"), 0)],
)
def test_the_number_of_corrections_is_limited_to_a_plausible_range(reported: object, parsed: int) -> None:
    assert _parse(corrections_made=reported).corrections_made == parsed


@pytest.mark.parametrize(
    ("reported", "parsed"),
    [
        ("calendar", ("calendar",)),
        (["a", " a ", "", None, 3, {"name": "b"}, "c"], ("a", "c")),
        (None, ()),
        ({"a": 1}, ()),
        (["x" * 90], ("x" * 64,)),
        ([str(number) for number in range(30)], tuple(str(number) for number in range(10))),
    ],
)
def test_tools_are_names_without_repeats(reported: object, parsed: tuple[str, ...]) -> None:
    assert _parse(tools_worked_well=reported).tools_worked_well == parsed


def test_an_evaluation_is_restored_from_its_signal() -> None:
    evaluation = _parse()
    signal = evaluation.signal()
    assert (signal.type, signal.summary) == (SignalType.SESSION_SUMMARY, evaluation.summary)
    assert _evaluation_in(signal.detail) == evaluation


def test_the_largest_evaluation_fits_into_a_signal_and_has_only_storable_text() -> None:
    names = [f'{number}\\"\x00\x01\ud800' + '"' * 90 for number in range(40)]
    evaluation = _parse(summary='"' * 9000, tools_worked_well=names, tools_failed_or_missed=names)
    detail = evaluation.signal().detail
    assert detail is not None
    assert len(detail) <= MAX_DETAIL
    assert _evaluation_in(detail) == evaluation
