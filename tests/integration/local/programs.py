"""Small stand-ins for Loci's programs, for the tests of the stack: `programs.py <role>`.

`gateway` responds to GET /readyz on LOCI_PORT, `dev-key` writes the key, `note` writes a file with its
environment and the addresses, `fail` prints an error and fails, `deaf` ignores SIGTERM. It imports
little, because a stack starts six of them.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from services.local.programs import Program, Programs

KEY = "key-of-the-developer"


def program(name: str, role: str) -> Program:
    """Return one of the programs below under a name."""
    return Program(name, (sys.executable, __file__, role))


def programs(prepare: str = "note", workers: str = "wait", gateway: str = "gateway") -> Programs:
    """Return a table of stand-ins, with the given roles for some of them."""
    return Programs(
        prepare=(program("migrate", prepare), program("dev-key", "dev-key")),
        gateway=program("gateway", gateway),
        background=(program("workers", workers), program("beat", "wait"), program("flower", "wait")),
    )


def _gateway() -> None:
    class ReadyHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    HTTPServer(("127.0.0.1", int(os.environ["LOCI_PORT"])), ReadyHandler).serve_forever()


def _dev_key() -> None:
    Path(os.environ["LOCI_DATA_DIR"], "dev-key").write_text(f"{KEY}\n")


def _note() -> None:
    folder = Path(os.environ["LOCI_DATA_DIR"])
    environment = {name: value for name, value in os.environ.items() if name.startswith("LOCI_")}
    addresses = json.loads((folder / "addresses.json").read_text())
    (folder / "note.json").write_text(json.dumps({"environment": environment, "addresses": addresses}))


def _fail() -> None:
    sys.exit("the schema is from the future")


def _deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pause()


ROLES: dict[str, Callable[[], object]] = {
    "gateway": _gateway,
    "dev-key": _dev_key,
    "note": _note,
    "fail": _fail,
    "wait": signal.pause,
    "deaf": _deaf,
}

if __name__ == "__main__":
    ROLES[sys.argv[1]]()
