"""One container of the image: its process, its log, and what is asked of it while it runs."""

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.deploy.image.tools import Failed

_MEMORY_GROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Specification:
    """What a manifest says about one container."""

    name: str
    command: tuple[str, ...]
    variables: dict[str, str]
    user: int
    group: int
    read_only: bool
    memory_bytes: int


class Runtime(Protocol):
    """A way to run containers."""

    def start_command(self, specification: Specification, root: Path, folder: Path) -> list[str]:
        """Return the command that runs a container to its end. `folder` is the container's own."""

    def execute_command(self, specification: Specification, root: Path, pid: int) -> list[str]:
        """Return the words before a command that runs in the container that process `pid` started."""

    def signal(self, specification: Specification, pid: int, number: signal.Signals) -> None:
        """Send a signal to the first process of the container."""


class Container:
    """One container and its log."""

    def __init__(self, specification: Specification, root: Path, folder: Path, runtime: Runtime) -> None:
        self.specification = specification
        self._root = root
        self._runtime = runtime
        self._folder = folder / specification.name
        self._folder.mkdir()
        self._log = self._folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the container."""
        command = self._runtime.start_command(self.specification, self._root, self._folder)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self, within: float) -> int:
        """Wait for the end and return the exit code."""
        assert self._process is not None
        return self._process.wait(within)

    @property
    def alive(self) -> bool:
        """Whether the container runs."""
        return self._process is not None and self._process.poll() is None

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the container, with its user and limits."""
        assert self._process is not None
        words = self._runtime.execute_command(self.specification, self._root, self._process.pid)
        return subprocess.run([*words, *command], capture_output=True, text=True, check=False)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the first process of the container."""
        if self._process is not None and self.alive:
            self._runtime.signal(self.specification, self._process.pid, number)

    def peak_memory(self) -> str:
        """Return the most memory that the container has used, in MiB, and the limit."""
        for group, file in zip(_MEMORY_GROUPS, ("memory.max_usage_in_bytes", "memory.peak"), strict=True):
            if (path := group / self.specification.name / file).exists():
                limit = self.specification.memory_bytes // 2**20
                return f"used at most {int(path.read_text()) // 2**20} of {limit} MiB"
        return "memory not counted"

    def kill(self) -> None:
        """End the container at once, if it runs."""
        if self.alive:
            self.signal(signal.SIGKILL)
            self.wait(10)

    def failure(self, what: str) -> Failed:
        """Return an error with the end of the log."""
        return Failed(f"{self.specification.name} {what}:\n{self._log.read_text(errors='replace')[-2000:]}")
