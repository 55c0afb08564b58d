"""One child process: started in a session of its own, and stopped together with its process group.

The session is needed because Ctrl-C signals the terminal's whole process group. Without it, a database
would end before the workers had released their jobs. The parent stops a child by its process id, and then
the rest of the child's process group.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from services.local import process_record
from services.local.signals import Signals
from shared.foundation import errors

_LOG_TAIL_LINES = 20
_POLL_SECONDS = 0.02


class StartFailed(errors.LociError):
    """A child did not start; the message ends with the last lines of its log."""


class Process:
    """A child process with a log and a record on disk; at most one runs at a time."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        record_file: Path,
        env: Mapping[str, str] | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        signals: Signals | None = None,
    ) -> None:
        self.name = name
        self._argv = list(argv)
        self._log = log
        self._record = record_file
        self._env = env
        self._stop_signal = stop_signal
        self._signals = signals or Signals()
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, None before the first start."""
        return self._child.pid if self._child else None

    @property
    def alive(self) -> bool:
        """Whether the child runs. The first check after its end also kills the rest of its process group."""
        self._reap()
        return self._child is not None and self._child.returncode is None

    def start(self) -> None:
        """Start the child and return at once, after stopping a process that a killed owner left behind.

        Raises StillOwned if the process of this record belongs to another owner that is alive.
        """
        process_record.stop_leftovers([self._record])
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,
            )
        process_record.write(self._record, self._child.pid, self._stop_signal)

    def wait_until(self, ready: Callable[[], bool], within: float) -> None:
        """Wait for the condition.

        Raises StartFailed if the child exits or `within` seconds pass, and Stopped on a stop signal.
        """
        deadline = time.monotonic() + within
        while not ready():
            self._signals.check()
            if not self.alive:
                raise self.failure(f"ended at once ({self._describe_end()})")
            if time.monotonic() >= deadline:
                raise self.failure(f"was not ready within {within:g} s")
            time.sleep(_POLL_SECONDS)

    def run(self, within: float) -> None:
        """Run the child to its end; raise StartFailed unless it exits with 0 within `within` seconds."""
        self.start()
        try:
            self._wait(within, until=lambda: self._signals.stopping)
            self._signals.check()
            if self.alive:
                raise self.failure(f"was not done within {within:g} s")
            if self._child is not None and self._child.returncode != 0:
                raise self.failure(f"failed ({self._describe_end()})")
        finally:
            self.stop(within=2)

    def failure(self, what: str) -> StartFailed:
        """Return an error that says what happened to the child and shows the end of its log."""
        return StartFailed(f"{self.name} {what}. The end of {self._log}:\n{self._read_log_tail()}")

    def request_stop(self) -> None:
        """Send the stop signal and return at once."""
        self.signal(self._stop_signal)

    def stop(self, within: float) -> None:
        """Send the stop signal; kill the child after `within` seconds, or on a second stop signal."""
        self.request_stop()
        self._wait(within, until=lambda: self._signals.force)
        self.kill()

    def kill(self) -> None:
        """Kill the child and what is left of its process group."""
        self.signal(signal.SIGKILL)
        while self.alive:
            time.sleep(_POLL_SECONDS)
        self._record.unlink(missing_ok=True)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the child alone, if it runs."""
        if self._child is not None and self.alive:
            os.kill(self._child.pid, number)

    def wait(self, within: float) -> bool:
        """Wait at most `within` seconds for the child to end; tell whether it has ended."""
        self._wait(within, until=lambda: False)
        return not self.alive

    def _wait(self, within: float, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + within
        while self.alive and time.monotonic() < deadline and not until():
            time.sleep(_POLL_SECONDS)

    def _reap(self) -> None:
        if self._child is None or self._child.returncode is not None:
            return
        # WNOWAIT: the child is not reaped yet. Until it is, no other process can get its id, so the
        # group that is killed here is certainly its own.
        with suppress(ChildProcessError):
            if os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.poll()

    def _describe_end(self) -> str:
        code = self._child.returncode if self._child else None
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def _read_log_tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return "\n".join(f"    {line}" for line in lines)
