"""The common base of the local Postgres, Redis and Qdrant: one server process in a folder of its own.

The folder holds `port`, `process.json` (`process_record.py`) and, unless another file is given, `log`.
Subclasses say how the server is started and when it is ready.
"""

import signal
from abc import ABC, abstractmethod
from pathlib import Path

from services.local import ports, private_file, process_record
from services.local.process import Process
from services.local.signals import Signals
from shared.foundation import errors

_READY_SECONDS = 60.0  # recovery after a crash may replay up to a GB of log


class LocalServer(ABC):
    """One server on 127.0.0.1."""

    name: str
    _stop_signal = signal.SIGTERM

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        log: Path | None = None,
        signals: Signals | None = None,
    ) -> None:
        """Set the folder; without `port` the server takes a free one and keeps it."""
        self._folder = data_dir.absolute()
        self._record = self._folder / "process.json"
        self._port = port
        self._log = log or self._folder / "log"
        self._signals = signals or Signals()
        self._process: Process | None = None

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.alive

    @property
    def pid(self) -> int | None:
        """The server's process id, None before the first start."""
        return self._process.pid if self._process else None

    @property
    @abstractmethod
    def url(self) -> str:
        """The address, with the credentials."""

    def start(self) -> str:
        """Start the server and return its URL once it is ready.

        A server that is started again has the same port and data. Raises StartFailed, PortTaken, or
        StillOwned when another live process runs a server in this folder.
        """
        self._prepare_folder()
        self._launch()
        return self.url

    def stop(self, within: float = 10.0) -> None:
        """Stop cleanly; kill the server after `within` seconds, or on a second stop signal."""
        if self._process is not None:
            self._process.stop(within)

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        if self._process is not None:
            self._process.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send the server a signal. SIGSTOP and SIGCONT simulate a server that hangs."""
        if self._process is not None:
            self._process.signal(number)

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the command line, and write the files that it needs. The port is known by then."""

    @abstractmethod
    def _is_ready(self) -> bool:
        """Tell whether the server answers."""

    def _prepare_folder(self) -> None:
        private_file.folder(self._folder)
        process_record.stop_leftovers([self._record])

    def _launch(self) -> None:
        self._port = ports.reserve_port(self._folder / "port", self._port)
        self._process = Process(
            self.name,
            self._command(),
            log=self._log,
            record_file=self._record,
            stop_signal=self._stop_signal,
            signals=self._signals,
        )
        self._process.start()
        try:
            self._process.wait_until(self._is_ready, _READY_SECONDS)
        except errors.LociError:
            self.kill()
            raise
