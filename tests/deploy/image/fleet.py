"""All containers of an installation: start them in order, probe them, play the demo, stop them."""

import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx

from services.commands import demo
from services.local import ports
from tests.deploy.image import burst, stores
from tests.deploy.image.container import Container, Runtime, Specification
from tests.deploy.image.pods import Pods
from tests.deploy.image.stores import Stores
from tests.deploy.image.tools import Failed, say

_START_SECONDS = 180.0
_WORK_SECONDS = 120.0
_STOP_SECONDS = 60.0
_PROBED_BY_HTTP = {"gateway": "/readyz", "flower": "/healthcheck"}
# As the Dockerfile's ENV; the image has no other variable that a process needs.
_OF_THE_IMAGE = {
    "PATH": "/venv/bin:/usr/local/bin:/usr/bin:/bin",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LOCI_DATA_DIR": "/tmp/loci",  # noqa: S108
    "LOCI_HEARTBEAT_FILE": "/tmp/loci-heartbeat",  # noqa: S108
}


class Fleet:
    """The containers of the overlay `small` on one root file system."""

    def __init__(self, root: Path, folder: Path, running: Stores, runtime: Runtime) -> None:
        self._root = root
        self._runtime = runtime
        self._folder = folder / "containers"
        self._folder.mkdir()
        self._stores = running
        self._ports = {"gateway": ports.pick_free_port(), "flower": ports.pick_free_port()}
        local = {
            "LOCI_HOST": ports.HOST,
            "LOCI_PORT": str(self._ports["gateway"]),
            "LOCI_FLOWER_PORT": str(self._ports["flower"]),
        }
        self._pods = Pods(_OF_THE_IMAGE, running.secrets(), local | running.settings())
        self._containers: dict[str, Container] = {}
        self._key = ""

    def play(self) -> None:
        """Run every step and print what was seen. Raises Failed at the first one that fails."""
        try:
            self._migrate()
            self._start()
            for component in self._containers:
                self._check_limits(component)
            demo.console.width = 110
            self._key = self._create_key()
            demo.replay(self._url("gateway"), self._key, demo.read(demo.EXAMPLE))
            self._wait_for_jobs()
            say(burst.measure(self._url("gateway"), self._key, self._stores.postgres))
            self._stop()
        finally:
            for container in self._containers.values():
                container.kill()

    def _url(self, component: str) -> str:
        return f"http://{ports.HOST}:{self._ports[component]}"

    def _container(self, specification: Specification) -> Container:
        return Container(specification, self._root, self._folder, self._runtime)

    def _run(self, specification: Specification) -> float:
        """Run a container to its end and return the seconds that it took."""
        container, started = self._container(specification), time.monotonic()
        container.start()
        if (code := container.wait(_START_SECONDS)) != 0:
            raise container.failure(f"ended with {code}")
        return time.monotonic() - started

    def _migrate(self) -> None:
        specification = self._pods.migration()
        seconds = self._run(specification)
        say(f"migrate         {' '.join(specification.command)}: complete in {seconds:.1f} s")

    def _start(self) -> None:
        for component, (*first, last) in self._pods.processes().items():
            for specification in first:
                self._run(specification)
            self._containers[component] = self._container(last)
            self._containers[component].start()
        for component, container in self._containers.items():
            _until(partial(self._is_ready, component), _START_SECONDS, container, "was not ready")

    def _is_ready(self, component: str) -> bool:
        container = self._containers[component]
        if not container.alive:
            raise container.failure("ended at once")
        if component not in _PROBED_BY_HTTP:
            return container.execute("loci", "alive").returncode == 0
        try:
            return httpx.get(self._url(component) + _PROBED_BY_HTTP[component]).status_code == 200
        except httpx.TransportError:
            return False

    def _check_limits(self, component: str) -> None:
        """Check from within that the process has no rights, and that the root file system is read-only."""
        container = self._containers[component]
        status = container.execute("cat", "/proc/1/status").stdout
        values = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        identity = values["Uid"].split()[0], values["Gid"].split()[0]
        rights = {values[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapInh")}
        refused = container.execute("touch", "/venv/file").stderr
        if (identity, rights, values["NoNewPrivs"]) != (("10001", "10001"), {"0" * 16}, "1"):
            raise Failed(f"{component} has rights: {status}")
        if "Read-only file system" not in refused:
            raise Failed(f"{component} could write: {refused}")
        say(f"{component:15} uid {identity[0]}, no capability, root file system read-only, ready")

    def _create_key(self) -> str:
        created = self._containers["gateway"].execute("loci", "keys", "create", "--tenant", "acme")
        if created.returncode != 0:
            raise Failed(created.stderr)
        refused = httpx.get(f"{self._url('flower')}/workers").status_code
        allowed = httpx.get(
            f"{self._url('flower')}/workers", auth=("loci", stores.FLOWER_PASSWORD)
        ).status_code
        say(f"Flower          {refused} without its password, {allowed} with it\n")
        return created.stdout.strip()

    def _wait_for_jobs(self) -> None:
        """Wait until the workers have asked the models about every memory."""
        gateway = self._containers["gateway"]
        _until(self._are_jobs_done, _WORK_SECONDS, gateway, "still has pending memories")
        chats = sum("chat" in call.path for call in self._stores.models.calls)
        texts = sum("embed" in call.path for call in self._stores.models.calls)
        say(f"\nworkers         called the language model {chats} times, the embedding model {texts} times")
        if not chats or not texts:
            raise Failed("a worker did no work")

    def _are_jobs_done(self) -> bool:
        headers = {"authorization": f"Bearer {self._key}"}
        status = httpx.get(f"{self._url('gateway')}/v1/status", headers=headers).json()
        return not any(status["pending"].values())

    def _stop(self) -> None:
        peaks = {name: container.peak_memory() for name, container in self._containers.items()}
        started = time.monotonic()
        for container in self._containers.values():
            container.signal(signal.SIGTERM)
        for component, container in self._containers.items():
            if (code := container.wait(_STOP_SECONDS)) != 0:
                raise container.failure(f"ended with {code} when stopped")
            seconds = time.monotonic() - started
            say(f"{component:15} stopped in {seconds:4.1f} s, {peaks[component]}")


def _until(holds: Callable[[], bool], within: float, container: Container, what: str) -> None:
    """Wait for a condition; raise Failed with the container's log when the time is over."""
    end = time.monotonic() + within
    while not holds():
        if time.monotonic() > end:
            raise container.failure(f"{what} within {within:.0f} s")
        time.sleep(0.2)
