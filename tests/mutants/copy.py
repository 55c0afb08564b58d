"""A copy of the project in which mutants are tried, so that the checkout is never changed."""

import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from importlib.util import cache_from_source
from pathlib import Path
from typing import IO, Any

from tests.mutants.databases import Databases
from tests.mutants.mutant import Mutant
from tests.mutants.runner import is_unit

LONGEST_TESTS_SECONDS = 20.0
_TIMES_LONGER = 5
_LEAST_SECONDS = 10.0
_MOST_TRIES = 3


class Outcome(Enum):
    """What a module's tests said to a mutant. It is undecided if the machine was too busy to tell."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    UNDECIDED = "undecided"


class FailsUnchanged(Exception):
    """Tests fail without any change, so that they say nothing about mutants."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of tests ended. `failed` is the test that failed, `seconds` how long all of it took.

    `gave_up_waiting` is true if the test failed because something took too long for it.
    """

    outcome: Outcome
    failed: str
    gave_up_waiting: bool
    seconds: float

    @property
    def may_be_load(self) -> bool:
        """Whether a busy machine may be the reason that the tests failed."""
        return self.outcome is Outcome.TIMED_OUT or self.gave_up_waiting


@dataclass(frozen=True, slots=True)
class ProjectCopy:
    """The tracked files of a checkout in a folder of their own, with databases and a process that runs tests.

    Both last for all mutants of the copy: starting them anew for each would take longer than most tests.
    """

    root: Path
    databases: Databases
    runner: "subprocess.Popen[str]"

    @classmethod
    @contextmanager
    def create(cls, checkout: Path, root: Path) -> Iterator["ProjectCopy"]:
        """Copy the tracked files, start the databases and the process, and stop both at the end."""
        _copy_files(checkout, root)
        compileall.compile_dir(root, quiet=2)
        with Databases.running(root.parent / f"{root.name}-databases") as databases:
            command = [sys.executable, "-m", "tests.mutants.runner"]
            environment = {
                **os.environ,
                "PYTHONPATH": str(root),
                "PYTHONDONTWRITEBYTECODE": "1",  # a mutant of the same second would be taken for the last one
                "TEST_STORES": databases.addresses,
            }
            pipe = subprocess.PIPE
            with subprocess.Popen(
                command, cwd=root, env=environment, stdin=pipe, stdout=pipe, text=True
            ) as runner:
                yield cls(root, databases, runner)
                _of(runner.stdin).close()

    @contextmanager
    def changing(self, module: str) -> Iterator[None]:
        """Prepare the process that runs tests for changes of a module: all but what depends on it stays."""
        self._ask({"begin": module})
        try:
            yield
        finally:
            self._ask({"end": module})

    def seconds_of(self, tests: tuple[str, ...]) -> float:
        """Run tests on the unchanged source and return how long they took.

        A test that fails gets a second chance, in case that the machine was busy. Raises FailsUnchanged.
        """
        for _ in range(2):
            run = self._run(tests, timeout=600)
            if run.outcome is Outcome.SURVIVED:
                return run.seconds
        raise FailsUnchanged(run.failed or " ".join(tests))

    def try_mutant(
        self, module: str, mutant: Mutant, tests: tuple[str, ...], seconds: float
    ) -> tuple[Outcome, str]:
        """Run tests, which take `seconds` without a change, on a changed module, and restore the module.

        Tests that take too long, or give up waiting, may do so because the machine is busy. They count only
        if they pass right afterwards without the change, in less than a fifth of the time that they had.
        Otherwise the mutant is tried again with more time; after the last try it is undecided.
        Return the outcome and the test that failed.
        """
        chosen = mutant.tests or tests
        for _ in range(_MOST_TRIES):
            limit = _TIMES_LONGER * seconds + _LEAST_SECONDS
            changed = self._run_changed(module, mutant, chosen, limit)
            if not changed.may_be_load:
                return changed.outcome, changed.failed
            # Without the parameters of the test: their texts may have spaces.
            doubtful = (changed.failed.partition("[")[0],) if changed.failed else chosen
            unchanged = self._run(doubtful, timeout=600)
            if unchanged.outcome is Outcome.SURVIVED and _TIMES_LONGER * unchanged.seconds < limit:
                return changed.outcome, changed.failed
            seconds = max(seconds, unchanged.seconds)
        return Outcome.UNDECIDED, changed.failed

    def _run_changed(self, module: str, mutant: Mutant, tests: tuple[str, ...], timeout: float) -> Run:
        path = self.root / module
        original = path.read_text()
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        path.write_text(mutant.source)
        try:
            return self._run(tests, timeout)
        finally:
            path.write_text(original)

    def _run(self, tests: tuple[str, ...], timeout: float) -> Run:
        answer = self._ask({"tests": tests, "timeout": timeout})
        if not is_unit(tests):
            self.databases.empty()
        outcome = Outcome(answer["outcome"])
        return Run(outcome, answer["failed"], answer["gave_up_waiting"], answer["seconds"])

    def _ask(self, request: dict[str, object]) -> dict[str, Any]:
        _of(self.runner.stdin).write(json.dumps(request) + "\n")
        _of(self.runner.stdin).flush()
        return dict(json.loads(_of(self.runner.stdout).readline()))


def _copy_files(checkout: Path, root: Path) -> None:
    listing = ["git", "-C", str(checkout), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0"):
        if name and (checkout / name).is_file():
            _copy_file(checkout / name, root / name)
            if name.endswith(".py") and (compiled := Path(cache_from_source(str(checkout / name)))).is_file():
                _copy_file(compiled, Path(cache_from_source(str(root / name))))


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)  # with its time, by which Python knows what it has compiled


def _of(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise RuntimeError("the process has no pipe")
    return stream
