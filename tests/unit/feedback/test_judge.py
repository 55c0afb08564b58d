"""FB2: a model's verdicts on doubtful corrections are read strictly."""

import json

import pytest

from shared.conversation.feedback import judge
from shared.conversation.feedback.feedback_signal import DoubtfulCorrection
from shared.foundation import errors


def test_verdicts_are_read_by_number() -> None:
    assert judge.parse('Sure:\n```json\n{"verdicts": {"1": true, "2": false}}\n```', 2) == {1: True, 2: False}


def test_what_is_no_verdict_on_a_known_number_is_left_out() -> None:
    verdicts = {"0": True, "1": "true", "2": 1, "3": True, "4": True, "x": False, "03": False}
    assert judge.parse(json.dumps({"verdicts": verdicts}), 3) == {3: True}


@pytest.mark.parametrize("reply", ["", "[]", '{"verdicts": [true]}', '{"corrections": {"1": true}}', "yes"])
def test_a_reply_without_verdicts_is_rejected(reply: str) -> None:
    with pytest.raises(errors.InvalidModelReply):
        judge.parse(reply, 1)


def test_the_prompt_numbers_the_pairs_one_line_each() -> None:
    doubtful = [
        DoubtfulCorrection(id="a", detail="No,\nFriday.", previous="It is on\nMonday."),
        DoubtfulCorrection(id="b", detail="Five, not four.", previous=None),
    ]
    assert judge.prompt_text(doubtful).splitlines() == [
        "1. assistant: It is on ⏎ Monday.",
        "   user: No, ⏎ Friday.",
        "2. assistant: (not known)",
        "   user: Five, not four.",
    ]
