"""Run tests again and again, each in a fork that has imported whatever the changed module can't change.

Importing takes longer than most tests. Reads one JSON object per line from standard input and answers each
with a line of JSON. `{"begin": path}` names the module that is going to change: all that does not depend on
it is imported, by a process that lasts until `{"end": path}`. In between, `{"tests": […], "timeout":
seconds}` runs tests. Its answer is whether the change was killed, survived or timed out, the test that
failed, whether it gave up waiting for something, and the seconds that all of it took. Tests of generated
examples draw the same ones each time.
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
from typing import NoReturn

import grimp
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
# The last line of a traceback, as Python prints it.
GAVE_UP_WAITING = re.compile(
    r"^[ |]*(?:[\w.]*timeout|[\w.]+: .*(?:timeout|timed out|too slow|deadline))", re.MULTILINE | re.IGNORECASE
)
_PACKAGES = ("shared", "services", "workers")
_PROJECT = (*_PACKAGES, "migrations", "tests")
_LIST_MODULES = "import sys, celery, tests.conftest; print('\\n'.join(sys.modules))"
# Nobody reads the messages: rewriting asserts, quoting the source around errors and searching for smaller
# examples would take half the time of a run.
_OPTIONS = (
    *("-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--tb=native", "--show-capture=no"),
    "--hypothesis-profile=mutants",
)
hypothesis_settings.register_profile(
    "mutants",
    derandomize=True,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)


def is_unit(tests: Sequence[str]) -> bool:
    """Return whether tests need no database."""
    return all(test.startswith("tests/unit/") for test in tests)


def main() -> None:
    """Answer requests until standard input ends."""
    names = _list_modules()
    _import([name for name in names if name.split(".")[0] not in _PROJECT])
    own_names = [name for name in names if name.split(".")[0] in _PACKAGES]
    graph = grimp.build_graph(*_PACKAGES, cache_dir=None)
    while line := sys.stdin.readline():
        module = json.loads(line)["begin"].removesuffix(".py").replace("/", ".")
        child = os.fork()
        if child == 0:
            changed_names = {module, *graph.find_downstream_modules(module)}
            _serve([name for name in own_names if changed_names.isdisjoint(_with_packages(name))])
        os.waitpid(child, 0)
        _reply({"ended": module})


def _with_packages(name: str) -> set[str]:
    """Return a module and the packages that are imported with it, which the graph does not count."""
    parts = name.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts) + 1)}


def _serve(names: Sequence[str]) -> NoReturn:
    """Import modules and answer requests, until the tests of the next module are asked for."""
    try:
        _import(names)
        _reply({"begun": len(names)})
        while "end" not in (request := json.loads(sys.stdin.readline())):
            _reply(_answer(request["tests"], request["timeout"]))
    finally:
        os._exit(0)


def _reply(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
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
        "gave_up_waiting": outcome == "killed" and GAVE_UP_WAITING.search(printed) is not None,
        "seconds": seconds,
    }


def _list_modules() -> list[str]:
    """Return the names of the modules that the tests import, and of the plugins of pytest."""
    listing = subprocess.run(
        [sys.executable, "-c", _LIST_MODULES], check=True, capture_output=True, text=True
    )
    plugins = [entry.module for entry in entry_points(group="pytest11")]
    return [name for name in [*listing.stdout.split(), *plugins] if name != "__main__"]


def _import(names: Sequence[str]) -> None:
    for name in names:
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
