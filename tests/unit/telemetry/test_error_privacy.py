"""The errors of tasks, which go to Celery, to logs and to Flower, quote no memory."""

import concurrent.futures
import traceback

import pytest
from celery.exceptions import Ignore

from shared.foundation import errors
from workers.runtime import error_privacy


def test_an_unexpected_error_is_reported_by_its_class_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(error_privacy.UnexpectedError) as raised, error_privacy.hide_messages():
        raise ValueError("the secret")
    assert str(raised.value) == "ValueError"
    assert "secret" not in _celery_traceback(raised.value)
    assert "secret" not in "".join(capsys.readouterr())


def test_a_loci_error_is_raised_without_its_cause() -> None:
    with pytest.raises(errors.Unavailable, match="postgres") as raised, error_privacy.hide_messages():
        raise errors.Unavailable("postgres", "away") from ValueError("the secret")
    assert raised.value.__cause__ is None
    assert "secret" not in _celery_traceback(raised.value)


def test_released_work_is_not_a_failure() -> None:
    with pytest.raises(Ignore), error_privacy.hide_messages():
        raise concurrent.futures.CancelledError


def _celery_traceback(error: BaseException) -> str:
    """Return what Celery would send: the traceback, without the code lines of this file."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    return "\n".join(line for line in lines if not line.strip().startswith("raise "))
