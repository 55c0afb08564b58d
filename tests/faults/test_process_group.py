"""`loci serve --processes 2`: two processes behind one socket stop, die and count as one gateway."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from services.local import http_probe, ports, process_record
from shared.foundation import config

_WITHIN = 60.0
_READY = re.compile(r'loci_http_requests_total\{method="GET",route="/readyz",status="200"\} (\d+)')
_IN_FLIGHT = re.compile(r"^loci_http_requests_in_flight (\d+)", re.MULTILINE)
_LISTENS = "0A"
Make = Callable[..., config.Settings]
Start = Callable[..., "Group"]


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _WITHIN
    while not holds():
        assert time.monotonic() < end, f"not within {_WITHIN} s: {what}"
        time.sleep(0.02)


class Group:
    """A gateway of two processes."""

    def __init__(self, settings: config.Settings, log: Path, **changes: object) -> None:
        values = settings.model_dump(include=settings.model_fields_set, mode="python") | changes
        values |= {"postgres_url": settings.postgres_url, "redis_url": settings.redis_url}
        self.port = ports.pick_free_port()
        self.log = log
        self.seen: set[int] = set()
        environment = {f"LOCI_{name.upper()}": _text(value) for name, value in values.items()}
        command = [sys.executable, "-P", "-m", "services.cli", "serve", "--processes", "2"]
        with log.open("w") as file:
            self.process = subprocess.Popen(
                command, env=os.environ | environment | {"LOCI_PORT": str(self.port)}, stderr=file
            )

    @property
    def children(self) -> list[int]:
        pid = self.process.pid
        found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        self.seen.update(found)
        return found

    def kill(self) -> None:
        """Kill what is left of it, also if the parent has left children behind."""
        self.process.kill()
        self.process.wait()
        for pid in self.seen:
            if process_record.start_identity(pid) is not None:
                os.kill(pid, signal.SIGKILL)

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return http_probe.responds_ok("127.0.0.1", self.port)

    def readiness(self) -> int:
        return self._get("/readyz").status_code

    def metrics(self) -> str:
        return self._get("/metrics").text

    def ready_requests(self) -> int:
        found = _READY.search(self.metrics())
        return int(found[1]) if found else 0

    def _get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", trust_env=False, timeout=_WITHIN)

    def answers_alone(self, pid: int) -> None:
        """Check that a child answers while the other one is frozen."""
        [other] = set(self.children) - {pid}
        os.kill(other, signal.SIGSTOP)
        try:
            assert self.readiness() == 200
        finally:
            os.kill(other, signal.SIGCONT)


def _text(value: object) -> str:
    return str(value.get_secret_value() if hasattr(value, "get_secret_value") else value)


def have_ended(pids: list[int]) -> bool:
    return all(process_record.start_identity(pid) is None for pid in pids)


@pytest.fixture
def start(make_settings: Make, tmp_path: Path) -> Iterator[Start]:
    groups: list[Group] = []

    def start_group(*, is_ready: bool = True, **changes: object) -> Group:
        group = Group(make_settings(), tmp_path / "log", **{"gateway_drain": 1, **changes})
        groups.append(group)
        if is_ready:
            until(group.is_ready, "the first answer")
            until(lambda: len(group.children) == 2, "two children")
            for pid in group.children:
                group.answers_alone(pid)
        return group

    yield start_group
    for group in groups:
        group.kill()


def test_both_processes_answer_on_one_socket_and_either_reports_the_sum(start: Start) -> None:
    group = start()
    before = group.ready_requests()
    for pid in group.children:
        group.answers_alone(pid)
    assert group.ready_requests() == before + 2
    for pid in group.children:
        [other] = set(group.children) - {pid}
        os.kill(other, signal.SIGSTOP)
        assert group.ready_requests() == before + 2
        os.kill(other, signal.SIGCONT)
    assert re.findall(r"^# HELP loci_http_requests_total (.*)", group.metrics(), re.MULTILINE) == [
        "Requests that were answered."
    ]
    assert len(_listening_sockets(group.port)) == 1


def _listening_sockets(port: int) -> list[str]:
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [fields[9] for fields in lines if fields[1].endswith(f":{port:04X}") and fields[3] == _LISTENS]


def test_a_stop_signal_drains_both_and_ends_with_0(start: Start) -> None:
    group = start(gateway_drain=3)
    children = group.children
    group.process.terminate()
    until(lambda: group.readiness() == 503, "an answer that it is not ready")
    for pid in children:
        [other] = set(children) - {pid}
        os.kill(other, signal.SIGSTOP)
        assert group.readiness() == 503
        os.kill(other, signal.SIGCONT)
    assert group.process.wait(_WITHIN) == 0
    assert have_ended(children)


def test_ctrl_c_reaches_all_processes_and_drains_them_once(start: Start) -> None:
    """A second signal would skip the wait."""
    group = start(gateway_drain=3)
    for pid in (*group.children, group.process.pid):
        os.kill(pid, signal.SIGINT)
    until(lambda: group.readiness() == 503, "an answer that it is not ready")
    assert group.process.wait(_WITHIN) == 0


def test_a_killed_process_is_replaced_while_the_other_answers_and_no_counter_falls(start: Start) -> None:
    group = start()
    before, [killed, other] = group.ready_requests(), group.children
    os.kill(killed, signal.SIGKILL)
    assert group.is_ready()
    until(lambda: len(group.children) == 2 and killed not in group.children, "a replacement")
    assert other in group.children
    assert "gateway_process_ended" in group.log.read_text()
    [replacement] = set(group.children) - {other}
    group.answers_alone(replacement)
    assert group.ready_requests() > before
    assert _IN_FLIGHT.findall(group.metrics()) == ["1"]


def test_the_processes_of_a_killed_parent_end(start: Start) -> None:
    group = start()
    children = group.children
    group.process.kill()
    group.process.wait()
    until(lambda: have_ended(children), "the end of the children")


def test_processes_that_can_not_start_end_all_with_a_message(start: Start, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[")
    group = start(is_ready=False, prices_file=prices)
    assert group.process.wait(_WITHIN) == 3
    assert "gateway_not_started" in group.log.read_text()
