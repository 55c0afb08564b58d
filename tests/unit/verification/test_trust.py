"""Who is trusted: a judge that knows the labels, and none that says the same to all or lies."""

import random
from collections.abc import Callable

import pytest

from shared.verification import calibration, trust
from shared.verification.calibration import LabelledClaim
from shared.verification.claim import Judgement, Verdict
from shared.verification.trust import Share

PAIRS = calibration.read()
SUPPORTED = Judgement(Verdict.SUPPORTED, "a quote")
NOT_SAID = Judgement(Verdict.NOT_SAID, "")


def by_label(pair: LabelledClaim) -> Judgement:
    return Judgement(pair.verdict, "a quote")


def opposite(pair: LabelledClaim) -> Judgement:
    return NOT_SAID if is_supported(pair) else SUPPORTED


def is_supported(pair: LabelledClaim) -> bool:
    return pair.verdict is Verdict.SUPPORTED


def wrong_about(pairs: list[LabelledClaim]) -> Callable[[LabelledClaim], Judgement]:
    ids = {pair.id for pair in pairs}
    return lambda pair: opposite(pair) if pair.id in ids else by_label(pair)


def measured(answer: Callable[[LabelledClaim], Judgement | None]) -> trust.Trust:
    return trust.measure(PAIRS, [answer(pair) for pair in PAIRS])


def test_a_judge_that_knows_the_labels_is_trusted() -> None:
    result = measured(by_label)
    assert (result.precision, result.recall) == (Share(80, 80), Share(80, 80))
    assert (result.is_trusted, result.reasons_against) == (True, [])
    assert {share.value for share in (*result.by_type.values(), *result.by_language.values())} == {1.0}


def test_contradicted_and_not_said_refuse_alike() -> None:
    assert measured(lambda pair: SUPPORTED if is_supported(pair) else NOT_SAID).is_trusted


@pytest.mark.parametrize("answer", [SUPPORTED, NOT_SAID, None])
def test_one_that_says_the_same_to_all_is_not_trusted(answer: Judgement | None) -> None:
    assert not measured(lambda _: answer).is_trusted


def test_one_that_lies_in_a_third_is_not_trusted() -> None:
    draw = random.Random(7)
    assert not measured(lambda pair: opposite(pair) if draw.random() < 1 / 3 else by_label(pair)).is_trusted


@pytest.mark.parametrize("name", trust.CRITICAL_TYPES)
def test_two_of_eight_wrong_in_a_critical_type_are_too_many(name: str) -> None:
    of_type = sorted((pair for pair in PAIRS if pair.type == name), key=is_supported, reverse=True)
    assert len(of_type) >= 8
    result = measured(wrong_about(of_type[:2]))
    assert result.by_type[name] == Share(len(of_type) - 2, len(of_type))
    assert [name in reason for reason in result.reasons_against] == [True]


def test_a_pair_without_a_verdict_is_a_wrong_one() -> None:
    first = PAIRS[0]
    result = measured(lambda pair: None if pair is first else by_label(pair))
    assert result.by_type[first.type].right == result.by_type[first.type].count - 1
    assert result.by_language[first.lang].right == result.by_language[first.lang].count - 1


def test_the_limits_are_those_of_the_description() -> None:
    rest = [pair for pair in PAIRS if pair.type not in trust.CRITICAL_TYPES]
    supported = [pair for pair in rest if is_supported(pair)]
    others = [pair for pair in rest if not is_supported(pair)]
    assert measured(wrong_about(supported[:16])).is_trusted
    assert not measured(wrong_about(supported[:17])).is_trusted
    assert measured(wrong_about(others[:4])).is_trusted
    assert not measured(wrong_about(others[:5])).is_trusted
