"""A copy of the project in which mutants are tried, so that the checkout is never changed."""

import compileall
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from importlib.util import cache_from_source
from pathlib import Path
from typing import IO

from tests.mutants.databases import Databases
from tests.mutants.mutant import Mutant
from tests.mutants.runner import is_unit

LONGEST_TESTS_SECONDS = 20.0


class Outcome(Enum):
    """What a module's tests said to a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


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

    def seconds_of(self, tests: tuple[str, ...]) -> float:
        """Run tests on the unchanged source and return how long they took; fail if they do."""
        started_at = time.monotonic()
        outcome, failed = self._run(tests, timeout=600)
        if outcome is not Outcome.SURVIVED:
            raise SystemExit(f"fails without any change: {failed or ' '.join(tests)}")
        return time.monotonic() - started_at

    def try_mutant(
        self, module: str, mutant: Mutant, tests: tuple[str, ...], seconds: float
    ) -> tuple[Outcome, str]:
        """Run tests on a changed module, for at most three times `seconds`, and restore the module.

        Return the outcome and the test that failed.
        """
        path = self.root / module
        original = path.read_text()
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        path.write_text(mutant.source)
        try:
            return self._run(mutant.tests or tests, timeout=3 * seconds + 10)
        finally:
            path.write_text(original)

    def _run(self, tests: tuple[str, ...], timeout: float) -> tuple[Outcome, str]:
        _of(self.runner.stdin).write(json.dumps({"tests": tests, "timeout": timeout}) + "\n")
        _of(self.runner.stdin).flush()
        answer = json.loads(_of(self.runner.stdout).readline())
        if not is_unit(tests):
            self.databases.empty()
        return Outcome(answer["outcome"]), answer["failed"]


def _copy_files(checkout: Path, root: Path) -> None:
    listing = ["git", "-C", str(checkout), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0"):
        if name and (checkout / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / name, root / name)


def _of(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise RuntimeError("the process has no pipe")
    return stream
