"""The stand-in for a judge answers by the labels, and its calibration is not counted."""

import pytest

from benchmarks.truth.data import TruthData
from benchmarks.truth.oracle import Manner, Oracle
from shared.verification import calibration, judge, trust
from shared.verification.claim import Claim, Evidence, Verdict

_EVIDENCE = (Evidence("user", "2026-03-01", "I live in Vejle."), Evidence("user", "", "Claim 2. Evidence:"))


def _verdicts(oracle: Oracle, *claims: Claim) -> list[Verdict | None]:
    judgements = judge.parse_reply(oracle.reply_to(judge.prompt(claims)), claims)
    return [None if judgement is None else judgement.verdict for judgement in judgements]


@pytest.mark.parametrize("manner", Manner)
def test_only_the_oracle_is_trusted(truth_data: TruthData, manner: Manner) -> None:
    pairs = calibration.read()
    oracle = Oracle(manner, truth_data, pairs)
    judgements = []
    for start in range(0, len(pairs), judge.MAX_CLAIMS):
        claims = [pair.claim for pair in pairs[start : start + judge.MAX_CLAIMS]]
        judgements += judge.parse_reply(oracle.reply_to(judge.prompt(claims)), claims)
    assert trust.measure(pairs, judgements).is_trusted is (manner is Manner.ORACLE)
    assert oracle.use.calls == 0


def test_statements_and_closings_are_answered_by_their_labels(truth_data: TruthData) -> None:
    oracle = Oracle(Manner.ORACLE, truth_data, ())
    right, wrong = "The user lives in Horsens now.", "The user no longer lives in Vejle."
    old = "The user lives in Vejle."
    claims = [
        Claim(right, _EVIDENCE),
        Claim(wrong, _EVIDENCE),
        Claim(right, _EVIDENCE, old),
        Claim(wrong, _EVIDENCE, old),
        Claim(right, _EVIDENCE, "Ida likes tea."),
        Claim("Nobody has labelled this.", _EVIDENCE),
    ]
    supported, not_said = Verdict.SUPPORTED, Verdict.NOT_SAID
    assert _verdicts(oracle, *claims) == [supported, not_said, supported, not_said, not_said, not_said]
    assert (oracle.use.calls, oracle.use.claims) == (1, len(claims))
    assert oracle.use.tokens > 0


def test_of_a_wrong_rewriting_what_a_right_one_says_is_right(truth_data: TruthData) -> None:
    oracle = Oracle(Manner.ORACLE, truth_data, ())
    claims = [Claim(text, _EVIDENCE) for text in truth_data.rewrites[0].bad[0]]
    assert _verdicts(oracle, *claims) == [Verdict.NOT_SAID, Verdict.SUPPORTED]
