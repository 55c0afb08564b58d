"""The unit of the gateway's cost: the processor time of a request to a bare FastAPI app.

The app has one constant route and the same server options as the gateway, so a figure in its units says
how much Loci adds to what any such server needs, on any machine.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from benchmarks import process_table

_START_SECONDS = 30


@dataclass(frozen=True, slots=True)
class ReferenceApp:
    """A running reference app."""

    url: str
    pid: int

    def seconds(self) -> float:
        """Return the processor time that it has used."""
        return process_table.processor_seconds(self.pid)[0]


@contextmanager
def running() -> Iterator[ReferenceApp]:
    """Run the app in a process of its own for the length of a block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.reference_app", str(port)]
    with subprocess.Popen(command) as process:
        try:
            _wait_until_open(port)
            yield ReferenceApp(f"http://127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()


def _wait_until_open(port: int) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("the reference app did not start")


def _serve(port: int) -> None:
    app = FastAPI()

    @app.get("/constant")
    async def constant() -> dict[str, str]:
        return {"status": "ok"}

    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None, access_log=False, server_header=False)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
