"""A minimal HTTP/1.1 client on a socket.

The clients share the machine with what they measure, and a full HTTP client needs about as much
processor time for a request as the gateway.
"""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import orjson


class Refused(Exception):
    """A response whose status is not 2xx."""


class Connection:
    """One connection that stays open and carries one request at a time."""

    def __init__(self, url: str, key: str | None = None) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "127.0.0.1", parts.port or 80)
        bearer = f"authorization: Bearer {key}\r\n" if key else ""
        self._head = f"host: {parts.netloc}\r\n{bearer}content-type: application/json\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send JSON and return the JSON of the response."""
        return orjson.loads(await self.exchange(method, path, b"" if body is None else orjson.dumps(body)))

    async def exchange(self, method: str, path: str, body: bytes) -> bytes:
        """Send a body and return that of the response; raise Refused unless its status is 2xx."""
        # A server closes connections that are idle for some seconds.
        if self._streams is None or self._streams[0].at_eof():
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        head = f"{method} {path} HTTP/1.1\r\n{self._head}content-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        response_head = (await reader.readuntil(b"\r\n\r\n")).lower()
        content = await reader.readexactly(_length(response_head))
        if response_head[9:10] != b"2":
            raise Refused(f"{method} {path}: {response_head[9:12].decode()} {content[:500]!r}")
        return content

    async def settled(self) -> None:
        """Wait until all records of the key's tenant are indexed and embedded."""
        while True:
            status = await self.send("GET", "/v1/status")
            if not any(status["pending"].values()):
                return
            await asyncio.sleep(0.2)

    async def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            await self._streams[1].wait_closed()


def _length(head: bytes) -> int:
    _, _, rest = head.partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0])
