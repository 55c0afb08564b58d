"""A proxy that a test can break: `with Proxy(url) as proxy: … proxy.mode = "blackhole"`.

    pass        bytes go through, each chunk `delay` seconds late
    refuse      nobody listens; open connections are reset
    blackhole   connections stay open and new ones are accepted, but nothing arrives
    reset       open connections are reset, new ones as soon as they are made

`cut(marker, nth)` resets one connection at the n-th message from the client that contains the marker.
`arrives` says whether the database still gets that message (and its response is lost) or not.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")
Mode = Literal["pass", "refuse", "blackhole", "reset"]
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Proxy:
    """A proxy on a thread of its own, so that it serves while a test blocks."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)
        # Not the loop of the tests (uvloop), which refuses to touch a socket that the other end has closed.
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._mode: Mode = "pass"
        self._marker, self._left, self._arrives = b"", 0, True
        self.delay = 0.0
        self.port = 0
        self.cuts = 0
        self._url = url

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """The database's URL through this proxy."""
        return self._url.replace(f":{self._target[1]}", f":{self.port}", 1)

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._do(self._change(mode))

    def cut(self, marker: bytes, nth: int, *, arrives: bool) -> None:
        """Reset the connection on which the n-th marked message from now on is sent."""
        self._marker, self._left, self._arrives = marker, nth, arrives

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _change(self, mode: Mode) -> None:
        refused, self._mode = self._mode == "refuse", mode
        if mode == "refuse" and self._server is not None:
            self._server.close()
        if mode in ("refuse", "reset"):
            self._reset(self._writers)
        if refused and mode != "refuse":
            await self._listen()

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._reset(self._writers)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _reset(self, writers: set[asyncio.StreamWriter]) -> None:
        for writer in list(writers):
            ours: socket.socket = writer.get_extra_info("socket")
            if ours.fileno() >= 0:
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = {writer}
        self._writers |= link
        try:
            if self._mode == "reset":
                return
            onward, back = await asyncio.open_connection(*self._target)
            link.add(back)
            self._writers |= link
            lost = asyncio.Event()
            up, down = self._up(reader, back, lost), self._down(onward, writer, lost)
            await asyncio.wait(
                [asyncio.create_task(up), asyncio.create_task(down)], return_when=asyncio.FIRST_COMPLETED
            )
        except OSError:
            pass
        finally:
            self._reset(link)
            self._writers -= link

    async def _up(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event
    ) -> None:
        while chunk := await _read(reader):
            await self._held()
            if self._is_cut(chunk):
                if not self._arrives:
                    return
                lost.set()
            writer.write(chunk)

    async def _down(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event
    ) -> None:
        while (chunk := await _read(reader)) and not lost.is_set():
            await self._held()
            writer.write(chunk)

    def _is_cut(self, chunk: bytes) -> bool:
        if self._left == 0 or self._marker not in chunk:
            return False
        self._left -= 1
        self.cuts += self._left == 0
        return self._left == 0

    async def _held(self) -> None:
        await asyncio.sleep(self.delay)
        while self._mode == "blackhole":  # noqa: ASYNC110  (the mode is set from another thread)
            await asyncio.sleep(0.01)


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65_536)
    except OSError:
        return b""
