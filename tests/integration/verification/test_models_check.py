"""`loci models check`: a model is asked all labelled claims over HTTP, and is trusted or not."""

import json
import re
from collections.abc import Callable

import pytest

from services.commands import judge_check
from shared.foundation import errors
from shared.verification import calibration
from shared.verification.calibration import LabelledClaim
from shared.verification.claim import Verdict
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer
from tests.standins.wire import Call

Printed = pytest.CaptureFixture[str]
_QUESTION = re.compile(r"^(?:Statement|New): (.*)$", re.MULTILINE)
_PAIRS = {pair.claim.statement: pair for pair in calibration.read()}


def judging(verdict_of: Callable[[LabelledClaim], Verdict]) -> Reply:
    """Return a model that knows which claim is asked, and quotes its last turn."""

    def answer(call: Call) -> str:
        asked = [_PAIRS[statement] for statement in _QUESTION.findall(call.prompt.partition("Claim 1. ")[2])]
        verdicts = [
            {"claim": number, "verdict": verdict_of(pair), "quote": pair.claim.evidence[-1].text}
            for number, pair in enumerate(asked, start=1)
        ]
        return json.dumps({"verdicts": verdicts})

    return Reply(answer)


def test_one_that_answers_by_the_labels_is_trusted(models: ModelServer, capsys: Printed) -> None:
    models.chat_default = judging(lambda pair: pair.verdict)
    assert judge_check.check(models.url, "oracle") == 0
    output = capsys.readouterr().out
    assert "80 of 80 (100%)" in output
    assert output.splitlines()[-1] == "trusted"
    assert len(models.chat_calls) == 8


def test_one_that_says_yes_to_all_is_not(models: ModelServer, capsys: Printed) -> None:
    models.chat_default = judging(lambda _: Verdict.SUPPORTED)
    assert judge_check.check(models.url, "yes") == 1
    output = capsys.readouterr().out
    assert "of what it calls supported 80 of 160 are right" in output
    assert output.splitlines()[-1].startswith("not trusted")


def test_replies_without_verdicts_count_as_wrong(models: ModelServer, capsys: Printed) -> None:
    models.chat_replies.append(Reply("I support them all."))
    models.chat_default = judging(lambda pair: pair.verdict)
    judge_check.check(models.url, "broken")
    output = capsys.readouterr().out
    assert "20 claims have no clear verdict" in output
    assert "of 160" not in output


def test_an_endpoint_that_does_not_answer_is_named(models: ModelServer) -> None:
    models.chat_default = Status(503)
    with pytest.raises(errors.Unavailable, match="language model"):
        judge_check.check(models.url, "away")


def test_without_an_endpoint_the_settings_are_named() -> None:
    with pytest.raises(errors.Invalid, match="LOCI_JUDGE_BASE_URL"):
        judge_check.check(None, None)
