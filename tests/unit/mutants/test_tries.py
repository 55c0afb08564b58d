"""A mutant is killed by a test that fails because of it, and never by a machine that is busy."""

from pathlib import Path
from typing import cast

import pytest

from tests.mutants.copy import FailsUnchanged, Outcome, ProjectCopy, Run
from tests.mutants.databases import Databases
from tests.mutants.guard import Guard
from tests.mutants.mutant import Mutant
from tests.mutants.runner import GAVE_UP_WAITING
from tests.mutants.score import Score

TESTS = ("tests/unit/test_module.py",)
TEST = f"{TESTS[0]}::test_it[a b]"
PASSED = Run(Outcome.SURVIVED, "", gave_up_waiting=False, seconds=1.0)
SLOW = Run(Outcome.SURVIVED, "", gave_up_waiting=False, seconds=60.0)
FAILED = Run(Outcome.KILLED, TEST, gave_up_waiting=False, seconds=1.0)
GAVE_UP = Run(Outcome.KILLED, TEST, gave_up_waiting=True, seconds=5.0)
TIMED_OUT = Run(Outcome.TIMED_OUT, "", gave_up_waiting=False, seconds=20.0)


@pytest.fixture
def copy(tmp_path: Path) -> ProjectCopy:
    (tmp_path / "module.py").write_text("unchanged")
    return ProjectCopy(tmp_path, cast("Databases", None), cast("object", None))  # type: ignore[arg-type]


def answers(monkeypatch: pytest.MonkeyPatch, *runs: Run) -> list[tuple[str, tuple[str, ...], float]]:
    """Let the runs of tests end like this, and return the list of the runs: source, tests and limit."""
    left, asked = list(runs), []

    def run(copy: ProjectCopy, tests: tuple[str, ...], timeout: float) -> Run:
        asked.append(((copy.root / "module.py").read_text(), tests, timeout))
        return left.pop(0)

    monkeypatch.setattr(ProjectCopy, "_run", run)
    return asked


def outcome_of(copy: ProjectCopy) -> Outcome:
    return copy.try_mutant("module.py", Mutant("change", "changed"), TESTS, 2.0)[0]


@pytest.mark.parametrize("run", [PASSED, FAILED])
def test_what_passes_or_fails_in_time_is_tried_once(
    copy: ProjectCopy, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    asked = answers(monkeypatch, run)
    assert outcome_of(copy) is run.outcome
    assert asked == [("changed", TESTS, 20.0)]
    assert (copy.root / "module.py").read_text() == "unchanged"


def test_a_run_that_takes_too_long_counts_if_the_unchanged_tests_are_quick_in_the_same_minute(
    copy: ProjectCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answers(monkeypatch, TIMED_OUT, PASSED)
    assert outcome_of(copy) is Outcome.TIMED_OUT
    assert asked[1][:2] == ("unchanged", TESTS)


def test_otherwise_it_is_tried_again_with_more_time(
    copy: ProjectCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answers(monkeypatch, TIMED_OUT, SLOW, PASSED)
    assert outcome_of(copy) is Outcome.SURVIVED
    assert [limit for source, _, limit in asked if source == "changed"] == [20.0, 310.0]


def test_a_test_that_gives_up_waiting_kills_if_it_passes_without_the_change(
    copy: ProjectCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answers(monkeypatch, GAVE_UP, PASSED)
    assert outcome_of(copy) is Outcome.KILLED
    assert asked[1][:2] == ("unchanged", (f"{TESTS[0]}::test_it",))


def test_a_test_that_gives_up_waiting_without_the_change_kills_nothing(
    copy: ProjectCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, *[GAVE_UP] * 6)
    assert outcome_of(copy) is Outcome.UNDECIDED


def test_tests_that_fail_twice_without_a_change_say_nothing(
    copy: ProjectCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, FAILED, PASSED)
    assert copy.seconds_of(TESTS) == PASSED.seconds
    answers(monkeypatch, FAILED, FAILED)
    with pytest.raises(FailsUnchanged, match="test_it"):
        copy.seconds_of(TESTS)


@pytest.mark.parametrize(
    ("outcomes", "fault", "is_enough"),
    [
        ([Outcome.KILLED] * 9 + [Outcome.SURVIVED], "", True),
        ([Outcome.KILLED] * 8 + [Outcome.SURVIVED], "", False),
        ([Outcome.KILLED] * 8 + [Outcome.UNDECIDED], "", False),
        ([Outcome.TIMED_OUT] * 9 + [Outcome.UNDECIDED], "", True),
        ([Outcome.KILLED] * 9, "fails without any change", False),
        ([], "", False),
    ],
)
def test_nine_of_ten_mutants_are_to_be_killed(
    outcomes: list[Outcome], fault: str, *, is_enough: bool
) -> None:
    score = Score(Guard("module.py", TESTS, 0, {}, (), ()), fault=fault)
    for outcome in outcomes:
        score.add(Mutant("change", "b"), "a", outcome)
    assert score.is_enough == is_enough


def test_of_a_hundred_mutants_three_may_be_equivalent() -> None:
    score = Score(Guard("module.py", TESTS, 0, {"-a\n+b": "the same"}, (), ()))
    for _ in range(97):
        score.add(Mutant("change", "d"), "a", Outcome.KILLED)
    for _ in range(3):
        score.add(Mutant("change", "b"), "a", Outcome.SURVIVED)
    assert score.is_enough
    score.add(Mutant("change", "b"), "a", Outcome.SURVIVED)
    assert not score.is_enough


@pytest.mark.parametrize(
    ("printed", "gave_up"),
    [
        ("Traceback (most recent call last):\n  ...\nTimeoutError\n", True),
        ("httpx.ReadTimeout: the server took long\n", True),
        ("TimeoutError: 0 of 1 calls arrived within 10 s\n", True),
        ("  | shared.foundation.errors.Unavailable: postgres timed out\n", True),
        ("hypothesis.errors.Flaky: its deadline was exceeded\n", True),
        ("AssertionError\n", False),
        ("    assert timeout == 3\nAssertionError: it did not wait\n", False),
    ],
)
def test_what_a_test_says_that_gave_up_waiting(printed: str, *, gave_up: bool) -> None:
    assert (GAVE_UP_WAITING.search(printed) is not None) == gave_up
