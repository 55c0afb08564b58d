"""A listener lets nobody in any more, and what waits there can still be accepted."""

import asyncio
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI

from services.gateway import backlog, drain


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_who_waits_can_be_accepted_and_is_heard_after_new_ones_are_kept_out(listener: socket.socket) -> None:
    assert not backlog.has_waiting(listener)
    with socket.create_connection(listener.getsockname()) as client:
        assert backlog.has_waiting(listener)
        backlog.keep_out_new(listener)
        with pytest.raises(TimeoutError):
            socket.create_connection(listener.getsockname(), timeout=0.2)
        client.sendall(b"asked")
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(5) == b"asked"
            connection.sendall(b"answered")
            assert client.recv(8) == b"answered"
    assert not backlog.has_waiting(listener)


async def test_a_gateway_stops_listening_only_when_nobody_waits(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "_LOOK_EVERY_SECONDS", 0.001)
    app = FastAPI()
    server: Any = drain._Server(uvicorn.Config(app), app, 0, None)
    server.servers = [SimpleNamespace(sockets=[listener])]
    with socket.create_connection(listener.getsockname()):
        waiting = asyncio.create_task(server._accept_waiting())
        assert await asyncio.wait({waiting}, timeout=0.5) == (set(), {waiting})
        listener.accept()[0].close()
        await asyncio.wait_for(waiting, 20)
