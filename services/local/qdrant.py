"""The vector index of one machine: our own small server, which speaks Qdrant's protocol.

There is no Qdrant server to install as a package; `services.local.vectors` explains what takes its
place. Everything else talks to it as to any Qdrant, by its URL.
"""

import signal
import sys
from pathlib import Path

from services.local import http_probe, ports, private_file, process_record
from services.local.process import Process
from services.local.signals import Signals
from shared.foundation import errors

_READY_WITHIN = 60.0  # seconds


class Qdrant:
    """One server on 127.0.0.1."""

    name = "qdrant"

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        log: Path | None = None,
        signals: Signals | None = None,
    ) -> None:
        """Name the folder: `data/`, `port`, `process.json` and `log` go there."""
        self._dir = data_dir.absolute()
        self._record = self._dir / "process.json"
        self._port = port
        self._log = log or self._dir / "log"
        self._signals = signals or Signals()
        self._process: Process | None = None

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.alive

    @property
    def pid(self) -> int | None:
        """The server's process number, None before the first start."""
        return self._process.pid if self._process else None

    def start(self) -> str:
        """Start the server and return its URL once it answers.

        Started again, it has the same port and data. Raises StartFailed, PortTaken, StillOwned.
        """
        private_file.folder(self._dir)
        process_record.stop_leftovers([self._record])
        self._port = ports.reserve_port(self._dir / "port", self._port)
        self._process = self._new_process(self._port)
        self._process.start()
        try:
            self._process.wait_until(self._ready, _READY_WITHIN)
        except errors.LociError:
            self.kill()
            raise
        return self.url

    @property
    def url(self) -> str:
        """The address."""
        return f"http://{ports.HOST}:{self._port}"

    def stop(self, within: float = 10.0) -> None:
        """Stop in order; killed after `within` seconds, or when hurried."""
        if self._process is not None:
            self._process.stop(within)

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        if self._process is not None:
            self._process.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send the server a signal (SIGSTOP and SIGCONT play a server that hangs)."""
        if self._process is not None:
            self._process.signal(number)

    def _new_process(self, port: int) -> Process:
        data = private_file.folder(self._dir / "data")
        # -P: a folder named `services` where the user stands must not be taken for ours.
        module = [sys.executable, "-P", "-m", "services.local.vectors"]
        return Process(
            self.name,
            [*module, "--port", str(port), "--data", str(data)],
            log=self._log,
            record_file=self._record,
            signals=self._signals,
        )

    def _ready(self) -> bool:
        return http_probe.responds_ok(ports.HOST, self._port or 0)
