"""Which TCP port of 127.0.0.1 a store takes.

New ports are drawn from outside the range that the kernel hands to outgoing connections. A client
that knocks on a dead store's port inside that range can, by chance, be given that very port as its
own end, connect to itself, and keep the store from ever coming back.
"""

import secrets
import socket
import time
from pathlib import Path

from services.local import private_file
from shared.foundation import errors

HOST = "127.0.0.1"
_LOWEST, _HIGHEST = 10_000, 65_535
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


class PortTaken(errors.LociError):
    """Another process listens on the port."""


def reserve_port(file: Path, asked: int | None = None, within: float = 2.0) -> int:
    """Return the port asked for, else the one remembered in the file if free, else a new one.

    The answer is remembered in the file. Raises PortTaken when the port asked for stays in use
    for `within` seconds.
    """
    if asked is not None:
        wait_free(asked, within)
    port = asked or _remembered(file) or pick_free_port()
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
        # As the stores do it: ports of connections that closed a moment ago do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def pick_free_port() -> int:
    """Return a port that was free a moment ago, drawn at random so that two callers rarely meet."""
    choices = _outside_outgoing()
    while not is_free(port := secrets.choice(choices)):
        pass
    return port


def _remembered(file: Path) -> int | None:
    try:
        port = int(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return port if is_free(port) else None


def _outside_outgoing() -> range:
    try:
        low, high = map(int, _OUTGOING.read_text().split())
    except OSError:
        low, high = 32_768, 60_999
    below, above = range(_LOWEST, low), range(high + 1, _HIGHEST + 1)
    widest = max(below, above, key=len)
    return widest if len(widest) > 0 else range(_LOWEST, _HIGHEST + 1)
