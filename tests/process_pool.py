"""The test's side of the fork server: programs that run beside a test, and commands that run to their end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

_COMMAND_WITHIN = 120.0


class ProcessPool:
    """The process that forks all others; see `tests.fork_server`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return dict(json.loads(self._process.stdout.readline()))

    def loci(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a `loci` command to its end, with these variables added to the environment."""
        with TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            command = Program(self, "services.cli", arguments, os.environ | variables, out, err)
            try:
                assert command.ended(_COMMAND_WITHIN), f"loci {arguments}: {err.read_text()}"
            finally:
                command.kill()
            assert command.code is not None
            return subprocess.CompletedProcess(arguments, command.code, out.read_text(), err.read_text())

    def close(self) -> None:
        self._process.communicate(timeout=20)


class Program:
    """A forked process that runs a module, with its whole group. It appends its output to files."""

    def __init__(
        self,
        process_pool: ProcessPool,
        module: str,
        arguments: tuple[str, ...],
        env: Mapping[str, str],
        out: Path,
        err: Path | None = None,
    ) -> None:
        self._process_pool = process_pool
        started = process_pool.ask(
            do="start",
            module=module,
            arguments=arguments,
            env=dict(env),
            out=str(out),
            err=str(err or out),
        )
        self.pid = int(started["pid"])

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs."""
        code = self._process_pool.ask(do="look", pid=self.pid)["code"]
        return None if code is None else int(code)

    def signal(self, number: signal.Signals) -> None:
        if self.code is None:
            os.killpg(self.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.ended(within=10)

    def ended(self, within: float) -> bool:
        """Wait for its end; tell whether it ended in time."""
        deadline = time.monotonic() + within
        while self.code is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.code is not None
