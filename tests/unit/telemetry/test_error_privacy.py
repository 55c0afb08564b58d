"""What a task fails by goes to Celery, to its log and to Flower: without a word of a memory."""

import concurrent.futures
import traceback

import pytest
from celery.exceptions import Ignore

from shared.foundation import errors
from workers.runtime import error_privacy


def test_an_unexpected_error_is_reported_by_its_class_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(error_privacy.UnexpectedError) as raised, error_privacy.hide_messages():
        raise ValueError("the canary")
    assert str(raised.value) == "ValueError"
    assert "canary" not in _shown(raised.value)
    assert "canary" not in "".join(capsys.readouterr())


def test_a_loci_error_is_raised_without_its_cause() -> None:
    with pytest.raises(errors.Unavailable, match="postgres") as raised, error_privacy.hide_messages():
        raise errors.Unavailable("postgres", "away") from ValueError("the canary")
    assert raised.value.__cause__ is None
    assert "canary" not in _shown(raised.value)


def test_released_work_is_not_a_failure() -> None:
    with pytest.raises(Ignore), error_privacy.hide_messages():
        raise concurrent.futures.CancelledError


def _shown(error: BaseException) -> str:
    """Return what Celery would send: the traceback, without the lines of this file's code."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    return "\n".join(line for line in lines if not line.strip().startswith("raise "))
