"""What a model says of snippets: only of those that it was shown, and only values from 0 to 1."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.conversation.scratchpad.snippet import Snippet
from shared.foundation import errors
from workers.enrichment.salience import parse_scores

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def snippet(snippet_id: str) -> Snippet:
    return Snippet(
        id=snippet_id,
        content="x",
        count=1,
        promoted_at=None,
        created_at=NOW,
        updated_at=NOW,
        session_id="s",
        slot=1,
        revision=1,
    )


def reply(*items: dict[str, Any]) -> str:
    return json.dumps({"snippets": list(items)})


def test_each_shown_snippet_has_the_models_value_and_reason() -> None:
    text = reply({"id": "a", "salience": 0.9, "reason": "lasting\nrule"}, {"id": "b", "salience": 0})
    scores = parse_scores(text, [snippet("a"), snippet("b")])
    assert (scores["a"].value, scores["a"].is_met, scores["a"].reason) == (0.9, True, "lasting ⏎ rule")
    assert (scores["b"].value, scores["b"].is_met) == (0.0, False)


@pytest.mark.parametrize("value", [1.01, -0.1, "0.9", True, None, float("nan"), 10**400])
def test_what_is_no_share_is_no_judgement(value: Any) -> None:
    text = reply({"id": "a", "salience": 0.9, "reason": "r"}, {"id": "b", "salience": value, "reason": "r"})
    score = parse_scores(text, [snippet("a"), snippet("b")])["b"]
    assert (score.value, score.is_met) == (None, False)
    assert "not judged" in score.reason


def test_a_reason_can_be_stored_whatever_the_model_wrote() -> None:
    scores = parse_scores(reply({"id": "a", "salience": 1, "reason": "a\ud800\x00b"}), [snippet("a")])
    assert "\x00" not in scores["a"].reason
    assert scores["a"].reason.encode()


def test_ids_that_were_not_shown_are_left_out_and_a_reply_of_them_alone_is_useless() -> None:
    foreign = {"id": "z", "salience": 1, "reason": "r"}
    assert parse_scores(reply(foreign, {"id": "a", "salience": 1}), [snippet("a")]).keys() == {"a"}
    with pytest.raises(errors.InvalidModelReply):
        parse_scores(reply(foreign), [snippet("a")])
