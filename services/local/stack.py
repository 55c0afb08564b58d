"""The whole of Loci on one machine: databases, gateway, workers, beat and Flower, started and supervised.

    start     databases (those without a URL in the environment) → addresses.json → migrate →
              development key → gateway, workers, beat, Flower → the gateway is ready
    stop      workers, beat, Flower → gateway → databases, in 25 s at most; a second signal kills

Each child has a session of its own and a record on disk. A stack that was killed leaves its
children running; the next one on the same data directory finds them by their records and stops
them first. A start that fails stops what it has started and shows the end of the failed child's log.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from services.local import data_dir, http_probe, model_check, ports, programs, signals
from services.local.postgres import Postgres
from services.local.process import Process
from services.local.qdrant import Qdrant
from services.local.redis import Redis
from services.local.server import LocalServer
from services.local.supervisor import Supervisor, Watched, supervise
from shared.foundation import config, errors

_PREPARE_SECONDS = 600.0  # a migration of a large database takes minutes
_READY_SECONDS = 90.0
# Together under 30 s, even if all hang. Jobs that are interrupted are claimed again when their lease ends.
_BACKGROUND_GRACE_SECONDS, _GATEWAY_GRACE_SECONDS, _SERVERS_GRACE_SECONDS = 10.0, 5.0, 5.0
_SERVERS: tuple[type[LocalServer], ...] = (Postgres, Redis, Qdrant)
_ANY_ADDRESS = {"0.0.0.0": ports.HOST, "::": "[::1]"}  # noqa: S104  # compared with, not bound to


@dataclass(frozen=True, slots=True)
class Running:
    """The addresses of a running stack. `key` is the development key: all rights on tenant `default`."""

    url: str
    key: str
    flower_url: str
    flower_user: str
    flower_password_file: Path | None
    data_dir: Path
    key_file: Path


class Stack:
    """One stack on one data directory."""

    def __init__(
        self,
        settings: config.Settings,
        *,
        commands: programs.Programs = programs.LOCI,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._settings = settings
        self._files = data_dir.DataDir(settings.data_dir)
        self._commands = commands
        self._say = say or _say
        self._signals = signals.Signals()
        self._servers: list[LocalServer] = []
        self._gateway: list[Process] = []
        self._background: list[Process] = []

    def run(self) -> int:
        """Start all, print `ready <url>`, supervise until a stop signal, stop all; return the exit code."""
        with signals.counting(self._signals):
            try:
                model_check.refuse_unknown_model(self._settings)
                with self._started() as running:
                    self._announce(running)
                    supervise(self._supervisors(), self._signals)
                    self._say("stopping …")
            except signals.Stopped:
                return 0
            except (errors.LociError, OSError) as error:
                self._say(f"Loci did not start: {error}")
                return 1
        return 0

    @contextmanager
    def running(self) -> Iterator[Running]:
        """Run the stack during a block, supervised by a thread. Raises the errors of its servers' start."""
        with signals.interrupting(), self._started() as running:
            arguments = (self._supervisors(), self._signals)
            supervision = threading.Thread(target=supervise, args=arguments, daemon=True)
            supervision.start()
            try:
                yield running
            finally:
                self._signals.ask()
                supervision.join()

    @contextmanager
    def _started(self) -> Iterator[Running]:
        with self._files.locked():
            try:
                self._files.stop_leftovers()
                self._check_ports()
                self._start_servers()
                self._prepare()
                self._start_programs()
                yield self._running()
            finally:
                self._stop()

    def _check_ports(self) -> None:
        for variable, port in (
            ("LOCI_PORT", self._settings.port),
            ("LOCI_FLOWER_PORT", self._settings.flower_port),
        ):
            try:
                ports.wait_free(port, within=2)
            except ports.PortTaken as error:
                raise ports.PortTaken(f"{error}: set {variable} to a free one") from None

    def _start_servers(self) -> None:
        classes = [server for server in _SERVERS if not data_dir.is_external(f"{server.name}_url")]
        self._servers = [
            server(self._files.root / server.name, log=self._files.log(server.name), signals=self._signals)
            for server in classes
        ]
        # At the same time, because each of them mostly waits. If one fails, the others are waited for.
        with ThreadPoolExecutor(len(_SERVERS)) as pool:
            urls = list(pool.map(lambda server: server.start(), self._servers))
        names = [f"{server.name}_url" for server in self._servers]
        self._files.write_addresses(dict(zip(names, urls, strict=True)))

    def _prepare(self) -> None:
        for command in self._commands.prepare:
            self._process(command).run(_PREPARE_SECONDS)

    def _start_programs(self) -> None:
        gateway = self._process(self._commands.gateway)
        self._gateway = [gateway]
        self._background = [self._process(command) for command in self._commands.background]
        for process in (gateway, *self._background):
            process.start()
        gateway.wait_until(self._is_ready, _READY_SECONDS)

    def _process(self, command: programs.Program) -> Process:
        return Process(
            command.name,
            command.argv,
            log=self._files.log(command.name),
            record_file=self._files.record(command.name),
            env=data_dir.environment(self._settings, self._files.root),
            signals=self._signals,
        )

    def _is_ready(self) -> bool:
        for process in self._background:
            if not process.alive:
                raise process.failure("ended at once")
        return http_probe.responds_ok(self._host.strip("[]"), self._settings.port)

    @property
    def _host(self) -> str:
        return _ANY_ADDRESS.get(self._settings.host, self._settings.host)

    def _running(self) -> Running:
        password = None if data_dir.is_external("flower_password") else self._files.flower_password
        return Running(
            url=f"http://{self._host}:{self._settings.port}",
            key=self._files.dev_key.read_text().strip(),
            flower_url=f"http://{self._host}:{self._settings.flower_port}",
            flower_user=self._settings.flower_user,
            flower_password_file=password,
            data_dir=self._files.root,
            key_file=self._files.dev_key,
        )

    def _announce(self, running: Running) -> None:
        self._say(_format_addresses(running))
        with suppress(OSError):
            sys.stdout.write(f"ready {running.url}\n")
            sys.stdout.flush()

    def _supervisors(self) -> list[Supervisor]:
        members: list[Watched] = [*self._servers, *self._gateway, *self._background]
        return [Supervisor(member, self._say) for member in members]

    def _stop(self) -> None:
        with signals.counting(self._signals):
            _stop_together(self._background, _BACKGROUND_GRACE_SECONDS)
            _stop_together(self._gateway, _GATEWAY_GRACE_SECONDS)
            deadline = time.monotonic() + _SERVERS_GRACE_SECONDS
            for server in reversed(self._servers):
                server.stop(within=max(0.5, deadline - time.monotonic()))
        # Without the file, a command says at once that no stack runs. With stale addresses it would time out.
        self._files.addresses.unlink(missing_ok=True)


def _stop_together(processes: list[Process], grace: float) -> None:
    for process in processes:
        process.request_stop()
    deadline = time.monotonic() + grace
    for process in processes:
        process.stop(within=max(0.0, deadline - time.monotonic()))


def _format_addresses(running: Running) -> str:
    file = running.flower_password_file
    password = f"password in {file}" if file else "password as in LOCI_FLOWER_PASSWORD"
    return f"""
Loci is running.

  gateway  {running.url}
  docs     {running.url}/docs
  Flower   {running.flower_url}  (user {running.flower_user}, {password})
  data     {running.data_dir}  (logs in {running.data_dir / "logs"})
  key      {running.key}  (stored in {running.key_file})

Ctrl-C stops everything.
"""


def _say(line: str) -> None:
    # Whoever reads the messages may have ended (`loci up | head`); the stack goes on.
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
