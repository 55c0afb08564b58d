"""Choose the TCP port of 127.0.0.1 on which a server listens.

New ports are chosen outside the range that the kernel uses for outgoing connections. While a server
is down, a client that connects to its port inside that range may get the very same port for its own
end. It is then connected to itself, and the server can never listen on that port again.
"""

import secrets
import socket
import time
from pathlib import Path

from services.local import private_file
from shared.foundation import errors

HOST = "127.0.0.1"
_MIN_PORT, _MAX_PORT = 10_000, 65_535
_OUTGOING_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")


class PortTaken(errors.LociError):
    """Another process listens on the port."""


def reserve_port(file: Path, requested: int | None = None, within: float = 2.0) -> int:
    """Return the requested port, else the port written in the file if it is free, else a new one.

    The port is then written to the file. Raises PortTaken if the requested port stays in use for
    `within` seconds.
    """
    if requested is not None:
        wait_free(requested, within)
    port = requested or _remembered(file) or pick_free_port()
    private_file.write(file, str(port))
    return port


def wait_free(port: int, within: float) -> None:
    """Wait until nothing listens on the port; raise PortTaken after `within` seconds."""
    deadline = time.monotonic() + within
    while not is_free(port):
        if time.monotonic() >= deadline:
            raise PortTaken(f"port {port} is in use by another process")
        time.sleep(0.02)


def is_free(port: int) -> bool:
    """Tell whether a server could listen on the port now."""
    with socket.socket() as probe:
        # As the servers do: a port of connections that were closed a moment ago counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def pick_free_port() -> int:
    """Return a free port, chosen at random so that two callers rarely choose the same."""
    choices = _ports_outside_outgoing_range()
    while not is_free(port := secrets.choice(choices)):
        pass
    return port


def _remembered(file: Path) -> int | None:
    try:
        port = int(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return port if is_free(port) else None


def _ports_outside_outgoing_range() -> range:
    try:
        low, high = map(int, _OUTGOING_RANGE_FILE.read_text().split())
    except OSError:
        low, high = 32_768, 60_999
    below, above = range(_MIN_PORT, low), range(high + 1, _MAX_PORT + 1)
    widest = max(below, above, key=len)
    return widest if len(widest) > 0 else range(_MIN_PORT, _MAX_PORT + 1)
