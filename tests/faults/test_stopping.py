"""A client that has connected to a stopping gateway gets its answer; whoever comes later is refused."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from services.local import process_record
from tests.faults.processes import Fleet
from tests.process_pool import Program

_WITHIN = 60.0
_WAITING = 300
_CLIENTS = 6
Serve = Callable[[int], tuple[Fleet, Program, list[int]]]


@pytest.fixture
def serve(make_fleet: Callable[..., Fleet]) -> Serve:
    """Return a function that starts a gateway of so many processes; it returns those that answer requests."""

    def serve(processes: int) -> tuple[Fleet, Program, list[int]]:
        fleet = make_fleet(gateway_drain=0, gateway_processes=processes)
        gateway = fleet.serve()
        return fleet, gateway, [gateway.pid] if processes == 1 else _children(gateway.pid, processes)

    return serve


def _children(parent: int, count: int) -> list[int]:
    path = Path(f"/proc/{parent}/task/{parent}/children")
    deadline = time.monotonic() + _WITHIN
    while len(children := path.read_text().split()) < count:
        assert time.monotonic() < deadline, "not all processes have started"
        time.sleep(0.02)
    return [int(child) for child in children]


@contextmanager
def _frozen(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def _connect(url: str, timeout: float = _WITHIN) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((str(address.hostname), int(address.port or 0)), timeout)


def _request(connection: socket.socket) -> None:
    connection.sendall(b"POST /v1/memories/search HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")


def _status(connection: socket.socket) -> bytes:
    """Return the status of the answer; nothing if the connection was closed without one, or reset."""
    try:
        return connection.recv(65_536)[9:12]
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("processes", [1, 2])
def test_what_waited_to_be_accepted_is_answered(serve: Serve, processes: int) -> None:
    fleet, gateway, serving = serve(processes)
    with _frozen(serving):
        connections = [_connect(fleet.url) for _ in range(_WAITING)]
        for connection in connections:
            _request(connection)
        os.kill(gateway.pid, signal.SIGTERM)
    statuses = [_status(connection) for connection in connections]
    for connection in connections:
        connection.close()
    assert statuses == [b"401"] * _WAITING
    assert gateway.ended(_WITHIN)
    assert gateway.code in (0, -signal.SIGTERM)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_client_that_has_connected_may_still_send_its_request(serve: Serve, processes: int) -> None:
    fleet, gateway, serving = serve(processes)
    with _frozen(serving):
        connection = _connect(fleet.url)
        os.kill(gateway.pid, signal.SIGTERM)
    _wait_until_refused(fleet.url)
    with closing(connection):
        _request(connection)
        assert _status(connection) == b"401"
    assert gateway.ended(_WITHIN)


def _wait_until_refused(url: str) -> None:
    """Wait until nobody else gets through to the gateway."""
    deadline = time.monotonic() + _WITHIN
    while time.monotonic() < deadline:
        try:
            _connect(url, timeout=0.1).close()
        except (ConnectionRefusedError, TimeoutError):
            return
    raise AssertionError("the gateway still accepts connections")


@pytest.mark.parametrize("processes", [1, 2])
def test_clients_that_come_all_the_while_are_answered_or_refused(serve: Serve, processes: int) -> None:
    fleet, gateway, _ = serve(processes)
    begun = threading.Barrier(_CLIENTS + 1)

    def ask_until_refused() -> list[bytes]:
        statuses: list[bytes] = []
        begun.wait()
        while True:
            try:
                connection = _connect(fleet.url)
            except ConnectionRefusedError:
                return statuses
            with closing(connection):
                _request(connection)
                statuses.append(_status(connection))

    with ThreadPoolExecutor(_CLIENTS) as pool:
        clients = [pool.submit(ask_until_refused) for _ in range(_CLIENTS)]
        begun.wait()
        os.kill(gateway.pid, signal.SIGTERM)
        assert {status for client in clients for status in client.result()} <= {b"401"}
    assert gateway.ended(_WITHIN)
    assert process_record.start_identity(gateway.pid) is None


@pytest.mark.parametrize("processes", [1, 2])
async def test_what_is_running_is_finished_while_new_clients_are_refused(
    serve: Serve, tenant: str, processes: int
) -> None:
    fleet, gateway, _ = serve(processes)
    key = await fleet.key(tenant)
    with closing(_connect(fleet.url)) as connection:
        head = f"POST /v1/memories HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
        body = b'{"content":"Saved while it stops."}'
        expected = (
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\nexpect: 100-continue\r\n"
        )
        connection.sendall(f"{head}{expected}\r\n".encode())
        assert _status(connection) == b"100"
        os.kill(gateway.pid, signal.SIGTERM)
        with pytest.raises(ConnectionRefusedError):
            _connect_again_and_again(fleet.url)
        connection.sendall(body)
        assert _status(connection) == b"201"
    assert gateway.ended(_WITHIN)


def _connect_again_and_again(url: str) -> None:
    while True:
        _connect(url, timeout=10).close()


def test_a_process_that_stops_alone_keeps_nobody_out(serve: Serve) -> None:
    fleet, _, [stopping, _] = serve(2)
    os.kill(stopping, signal.SIGTERM)
    deadline = time.monotonic() + _WITHIN
    while process_record.start_identity(stopping) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    with closing(_connect(fleet.url, timeout=10)) as connection:
        _request(connection)
        assert _status(connection) == b"401"
