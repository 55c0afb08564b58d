"""Run tests again and again, each in a fork with the libraries imported but no module of the project.

Importing the libraries takes longer than most unit tests. Reads one JSON object per line from standard
input, `{"tests": […], "timeout": seconds}`, and answers each with a line: killed, survived or timed out.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

_PROJECT = ("shared", "services", "workers", "migrations", "tests")
_LIST_MODULES = "import sys, celery, tests.conftest; print('\\n'.join(sys.modules))"
# Plain asserts: nobody reads the messages, and rewriting them would take a second of each run.
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--assert=plain")


def is_unit(tests: Sequence[str]) -> bool:
    """Return whether tests need no database."""
    return all(test.startswith("tests/unit/") for test in tests)


def main() -> None:
    """Answer requests until standard input ends."""
    _import_libraries()
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(_run(request["tests"], request["timeout"]) + "\n")
        sys.stdout.flush()


def _import_libraries() -> None:
    listing = subprocess.run(
        [sys.executable, "-c", _LIST_MODULES], check=True, capture_output=True, text=True
    )
    for name in listing.stdout.split():
        if name.split(".")[0] not in (*_PROJECT, "__main__"):
            try:
                importlib.import_module(name)
            except ImportError:
                continue  # an alias that a library puts into sys.modules


def _run(tests: list[str], timeout: float) -> str:
    child = os.fork()
    if child == 0:
        _become_pytest(tests)
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


def _become_pytest(tests: list[str]) -> None:
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
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
