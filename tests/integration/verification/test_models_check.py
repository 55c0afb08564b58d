"""`loci models check`: a model is asked all labelled claims over HTTP, and is trusted or not."""

import pytest

from services.commands import judge_check
from shared.foundation import errors
from tests.standins.asked_claims import VerdictOf, by_label, reply_text, yes_to_all
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer
from tests.standins.wire import Call

Printed = pytest.CaptureFixture[str]


def judging(verdict_of: VerdictOf) -> Reply:
    """Return a model that knows which claim is asked, and quotes its last turn."""
    return Reply(lambda call: reply_text(call, verdict_of))


def test_one_that_answers_by_the_labels_is_trusted(models: ModelServer, capsys: Printed) -> None:
    models.judge_default = judging(by_label)
    assert judge_check.check(models.url, "oracle") == 0
    output = capsys.readouterr().out
    assert "80 of 80 (100%)" in output
    assert output.splitlines()[-1] == "trusted"
    assert len(models.judge_calls) == 8


def test_one_that_says_yes_to_all_is_not(models: ModelServer, capsys: Printed) -> None:
    models.judge_default = judging(yes_to_all)
    assert judge_check.check(models.url, "yes") == 1
    output = capsys.readouterr().out
    assert "of what it calls supported 80 of 160 are right" in output
    assert output.splitlines()[-1].startswith("not trusted")


def test_replies_without_verdicts_count_as_wrong(models: ModelServer, capsys: Printed) -> None:
    def all_but_the_first(call: Call) -> str:
        return reply_text(call, by_label) if len(models.judge_calls) > 1 else "I support them all."

    models.judge_default = Reply(all_but_the_first)
    judge_check.check(models.url, "broken")
    output = capsys.readouterr().out
    assert "20 claims have no clear verdict" in output
    assert "of 160" not in output


def test_an_endpoint_that_does_not_answer_is_named(models: ModelServer) -> None:
    models.judge_default = Status(503)
    with pytest.raises(errors.Unavailable, match="language model"):
        judge_check.check(models.url, "away")


def test_without_an_endpoint_the_settings_are_named() -> None:
    with pytest.raises(errors.Invalid, match="LOCI_JUDGE_BASE_URL"):
        judge_check.check(None, None)
