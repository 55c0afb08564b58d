"""A copy of the project in which mutants are tried, so that the checkout is never changed."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.mutants.mutant import Mutant

LONGEST_TESTS_SECONDS = 20.0


class Outcome(Enum):
    """What a module's tests said to a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True)
class ProjectCopy:
    """The tracked files of a checkout in a folder of their own."""

    root: Path

    @classmethod
    def create(cls, checkout: Path, root: Path) -> "ProjectCopy":
        """Copy the tracked files."""
        listing = ["git", "-C", str(checkout), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0"):
            if name and (checkout / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / name, root / name)
        return cls(root)

    def seconds_of(self, tests: tuple[str, ...]) -> float:
        """Run tests on the unchanged source and return how long they took; fail if they do."""
        started_at = time.monotonic()
        if self._run(tests, timeout=600) is not Outcome.SURVIVED:
            raise SystemExit(f"these fail without any change: {' '.join(tests)}")
        return time.monotonic() - started_at

    def try_mutant(self, module: str, mutant: Mutant, tests: tuple[str, ...], seconds: float) -> Outcome:
        """Run tests on a changed module, for at most three times `seconds`, and restore the module."""
        path = self.root / module
        original = path.read_text()
        path.write_text(mutant.source)
        try:
            return self._run(tests, timeout=3 * seconds + 10)
        finally:
            path.write_text(original)

    def _run(self, tests: tuple[str, ...], timeout: float) -> Outcome:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            command, cwd=self.root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                return Outcome.SURVIVED if process.wait(timeout) == 0 else Outcome.KILLED
            except subprocess.TimeoutExpired:
                process.terminate()  # pytest stops the databases that it started
                _end(process)
                return Outcome.TIMED_OUT


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
