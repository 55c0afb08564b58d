"""Large bodies, with a key and without, neither stall a gateway nor fill its memory."""

import asyncio
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from services.gateway.limits import MAX_JSON_VALUES
from tests.faults.processes import Fleet
from tests.process_pool import Program

MIB = 1024 * 1024
SIZE = 30 * MIB
_CHUNK_BYTES = 64 * 1024
_ROUNDS = 10  # of which one has to be quick: other processes may have taken the machine in the others
_HEALTH_WITHIN = 0.25
BODIES = {
    "empty lists": b'{"memories":[' + b"[]," * ((SIZE - 20) // 3) + b"[]]}",
    "objects": b'{"memories":[' + b'{"a":1},' * ((SIZE - 24) // 8) + b'{"a":1}]}',
    "UTF-16": '{"Ģ":1,"memories":['.encode("utf-16-le") + "[],".encode("utf-16-le") * (SIZE // 6),
}


class Answer:
    """How a request was answered, how long that took, and its problem."""

    def __init__(self, url: str, path: str, body: bytes, key: str | None) -> None:
        host, port = urlsplit(url).hostname, urlsplit(url).port
        authorization = f"authorization: Bearer {key}\r\n" if key else ""
        head = (
            f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{authorization}"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        with socket.create_connection((host, port), timeout=60) as connection:
            started = time.monotonic()
            sender = threading.Thread(target=_send, args=(connection, head.encode() + body))
            sender.start()
            response = connection.recv(_CHUNK_BYTES)
            self.seconds = time.monotonic() - started
            while chunk := _receive(connection):
                response += chunk
            sender.join()
        first, _, content = response.partition(b"\r\n\r\n")
        self.status = int(first.split(b" ")[1])
        self.problem = json.loads(content)


def _send(connection: socket.socket, content: bytes) -> None:
    try:
        connection.sendall(content)
    except OSError:  # it was answered, and closed, before all of it was sent
        return


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_CHUNK_BYTES)
    except ConnectionResetError:
        return b""


def _memory_bytes(gateway: Program, field: str) -> int:
    [line] = [
        line
        for line in Path(f"/proc/{gateway.pid}/status").read_text().splitlines()
        if line.startswith(field)
    ]
    return int(line.split()[1]) * 1024


class Round:
    """Two bodies at once, while another client asks for the gateway's health."""

    def __init__(self, fleet: Fleet, gateway: Program, path: str, body: bytes, key: str | None) -> None:
        Path(f"/proc/{gateway.pid}/clear_refs").write_text("5")  # the peak is that of now
        before = _memory_bytes(gateway, "VmRSS")
        self._url = fleet.url
        self._is_over = threading.Event()
        with ThreadPoolExecutor(3) as pool:
            health = pool.submit(self._slowest_health)
            answers = [pool.submit(Answer, fleet.url, path, body, key) for _ in range(2)]
            self.answers = [answer.result() for answer in answers]
            self._is_over.set()
            self.health_seconds = health.result()
        self.added_bytes = _memory_bytes(gateway, "VmHWM") - before

    def _slowest_health(self) -> float:
        slowest = 0.0
        address = urlsplit(self._url)
        while not self._is_over.is_set():
            started = time.monotonic()
            with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                while connection.recv(_CHUNK_BYTES):
                    pass
            slowest = max(slowest, time.monotonic() - started)
        return slowest


def _check_rounds(rounds: Iterator[Round], status: int, limit_bytes: int, *, within: float) -> None:
    """Check the answers of some rounds, until in one of them nothing took longer than it may."""
    slowest = []
    for finished in rounds:
        assert [answer.status for answer in finished.answers] == [status, status]
        assert finished.added_bytes <= limit_bytes
        slowest.append((max(answer.seconds for answer in finished.answers), finished.health_seconds))
        if slowest[-1][0] <= within and slowest[-1][1] <= _HEALTH_WITHIN:
            return
    raise AssertionError(f"seconds of answers and of probes: {slowest}")


@pytest.mark.parametrize("path", ["/v1/memories/batch", "/v1/import"])
def test_without_a_key_a_large_body_is_refused_at_once_and_nothing_of_it_is_kept(
    make_fleet: Callable[..., Fleet], path: str
) -> None:
    fleet = make_fleet()
    gateway = fleet.serve()
    rounds = (Round(fleet, gateway, path, BODIES["empty lists"], None) for _ in range(_ROUNDS))
    _check_rounds(rounds, 401, 20 * MIB, within=0.2)


async def test_with_a_key_a_body_of_as_many_unknown_keys_as_are_parsed_is_refused_soon(
    make_fleet: Callable[..., Fleet], tenant: str
) -> None:
    fleet = make_fleet()
    gateway = fleet.serve()
    key = await fleet.key(tenant)
    unknown = ",".join(f'"k{number}":1' for number in range(MAX_JSON_VALUES - 5))
    body = f'{{"memories":[{{"content":"x",{unknown}}}]}}'.encode()
    rounds = (Round(fleet, gateway, "/v1/memories/batch", body, key) for _ in range(_ROUNDS))
    await asyncio.to_thread(_check_rounds, rounds, 422, 150 * MIB, within=math.inf)


async def test_with_a_key_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    make_fleet: Callable[..., Fleet], tenant: str
) -> None:
    fleet = make_fleet()
    gateway = fleet.serve()
    key = await fleet.key(tenant)
    for body in BODIES.values():
        rounds = (Round(fleet, gateway, "/v1/memories/batch", body, key) for _ in range(_ROUNDS))
        await asyncio.to_thread(_check_rounds, rounds, 413, 150 * MIB, within=math.inf)
