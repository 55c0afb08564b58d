"""Run tests again and again, each in a fork with the libraries imported but no module of the project.

Importing the libraries takes longer than most unit tests. Reads one JSON object per line from standard
input, `{"tests": […], "timeout": seconds}`, and answers each with a line of JSON: whether the change was
killed, survived or timed out, the test that failed, whether it gave up waiting for something, and the
seconds that all of it took. Tests of generated examples draw the same ones each time.
"""

import gc
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import entry_points

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_GAVE_UP_WAITING = re.compile(r"^E\s.*(?:Timeout|timed out|too slow|deadline)", re.MULTILINE | re.IGNORECASE)
_PROJECT = ("shared", "services", "workers", "migrations", "tests")
_LIST_MODULES = "import sys, celery, tests.conftest; print('\\n'.join(sys.modules))"
# Plain asserts: nobody reads the messages, and rewriting them would take a second of each run.
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--hypothesis-profile=mutants")
hypothesis_settings.register_profile(
    "mutants", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def is_unit(tests: Sequence[str]) -> bool:
    """Return whether tests need no database."""
    return all(test.startswith("tests/unit/") for test in tests)


def main() -> None:
    """Answer requests until standard input ends."""
    _import_libraries()
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(json.dumps(_answer(request["tests"], request["timeout"])) + "\n")
        sys.stdout.flush()


def _answer(tests: list[str], timeout: float) -> dict[str, object]:
    started_at = time.monotonic()
    with tempfile.TemporaryFile() as output:
        outcome = _run(tests, timeout, output.fileno())
        seconds = time.monotonic() - started_at
        output.seek(0)
        printed = output.read().decode(errors="replace")
    failed = _FAILED.findall(printed)
    return {
        "outcome": outcome,
        "failed": failed[-1] if failed else "",
        "gave_up_waiting": outcome == "killed" and _GAVE_UP_WAITING.search(printed) is not None,
        "seconds": seconds,
    }


def _import_libraries() -> None:
    listing = subprocess.run(
        [sys.executable, "-c", _LIST_MODULES], check=True, capture_output=True, text=True
    )
    plugins = [entry.module for entry in entry_points(group="pytest11")]
    for name in [*listing.stdout.split(), *plugins]:
        if name.split(".")[0] not in (*_PROJECT, "__main__"):
            try:
                importlib.import_module(name)
            except ImportError:
                continue  # an alias that a library puts into sys.modules
    gc.freeze()  # the forks need not look through it


def _run(tests: list[str], timeout: float, output: int) -> str:
    child = os.fork()
    if child == 0:
        _become_pytest(tests, output)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_group(child)
            return "survived" if status == 0 else "killed"
        time.sleep(0.02)
    _end_group(child)
    os.waitpid(child, 0)
    return "timed out"


def _become_pytest(tests: list[str], output: int) -> None:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    code = 1
    try:
        # Unit tests start nothing: without the fixtures, a run imports no more than what it tests.
        options = [*_OPTIONS, "--noconftest"] if is_unit(tests) else [*_OPTIONS]
        code = int(pytest.main([*options, *tests]))
    finally:
        os._exit(code)


def _end_group(group: int) -> None:
    """End the tests and whatever they started."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    main()
