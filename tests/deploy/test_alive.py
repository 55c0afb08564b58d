"""`loci alive` distinguishes a process that hangs from one without its broker. Runs real processes."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.local import http_probe, ports
from services.local.redis import Redis
from shared.foundation import config
from shared.infra import heartbeat
from tests.conftest import Stores
from tests.process_pool import ProcessPool, Program

WITHIN = 120.0
Settings = Callable[..., config.Settings]
Start = Callable[..., Program]
Alive = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Redis]:
    """A broker that a test may stop."""
    redis = Redis(tmp_path / "broker")
    redis.start()
    yield redis
    redis.stop()


@pytest.fixture
def start(process_pool: ProcessPool, tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Return a function that starts a module with arguments and settings; it is killed after the test."""
    programs: list[Program] = []

    def start_program(module: str, *arguments: str, **settings: object) -> Program:
        env = os.environ | _variables(settings)
        programs.append(Program(process_pool, module, arguments, env, tmp_path / "log"))
        return programs[-1]

    yield start_program
    for program in programs:
        program.kill()


@pytest.fixture
def alive(process_pool: ProcessPool) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs `loci alive`."""

    def run(max_age: float, **settings: object) -> subprocess.CompletedProcess[str]:
        return process_pool.loci("alive", "--max-age", str(max_age), **_variables(settings))

    return run


def _variables(settings: dict[str, object]) -> dict[str, str]:
    return {f"LOCI_{name.upper()}": str(value) for name, value in settings.items()}


def _until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition, at most `WITHIN` seconds."""
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end, f"not within {WITHIN} s: {what}"
        time.sleep(0.05)


def _is_recent(file: Path) -> bool:
    return (age := heartbeat.age_seconds(file)) is not None and age < 1


def _keeps_writing(file: Path, seconds: float) -> None:
    """Check for this many seconds that heartbeats are written."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        _until(lambda: _is_recent(file), "a heartbeat")


def test_a_worker_is_alive_without_its_broker_and_dead_when_its_loop_hangs(
    make_settings: Settings, stores: Stores, broker: Redis, start: Start, alive: Alive, tmp_path: Path
) -> None:
    file = tmp_path / "heartbeat"
    settings = _worker_settings(make_settings(), stores, broker.url, file)
    assert alive(60, **settings).returncode == 1
    worker = start("tests.deploy.hanging", **settings)
    _until(lambda: _is_recent(file), "the first heartbeat")
    assert alive(60, **settings).returncode == 0
    broker.kill()
    _keeps_writing(file, 3)
    broker.start()
    _keeps_writing(file, 1)
    worker.signal(signal.SIGUSR2)
    _until(lambda: (heartbeat.age_seconds(file) or 0) > 2, "the end of the heartbeats")
    probe = alive(1, **settings)
    assert worker.code is None, "the process itself still runs"
    assert probe.returncode == 1
    assert "heartbeat" in probe.stderr


def _worker_settings(base: config.Settings, stores: Stores, broker: str, file: Path) -> dict[str, object]:
    assert base.postgres_url is not None
    return {
        "postgres_url": base.postgres_url.get_secret_value(),
        "redis_url": stores.redis_url,
        "qdrant_url": stores.qdrant_url,
        "broker_url": broker,
        "prefix": base.prefix,
        "data_dir": base.data_dir,
        "heartbeat_file": file,
        "port": ports.pick_free_port(),
        "flower_port": ports.pick_free_port(),
        "gateway_processes": 1,
        "log_level": "ERROR",
    }


@pytest.mark.parametrize("role", ["worker", "beat"])
def test_a_process_that_starts_without_its_broker_is_alive_and_waits_for_it(
    role: str, make_settings: Settings, stores: Stores, start: Start, alive: Alive, tmp_path: Path
) -> None:
    file = tmp_path / "heartbeat"
    unused_url = f"redis://127.0.0.1:{ports.pick_free_port()}/1"
    settings = _worker_settings(make_settings(), stores, unused_url, file)
    module, words = ("tests.deploy.hanging", ()) if role == "worker" else ("services.cli", ("beat",))
    started = start(module, *words, **settings)
    _until(file.exists, "the first heartbeat")
    first = file.read_text()
    _until(lambda: file.read_text() != first, "another heartbeat")
    assert started.code is None
    assert alive(60, **settings).returncode == 0


def test_beat_writes_heartbeats_and_a_frozen_beat_is_dead(
    make_settings: Settings, stores: Stores, broker: Redis, start: Start, alive: Alive, tmp_path: Path
) -> None:
    file = tmp_path / "heartbeat"
    settings = _worker_settings(make_settings(), stores, broker.url, file) | {"dispatch_interval": 0.2}
    beat = start("services.cli", "beat", **settings)
    _until(lambda: _is_recent(file), "the first heartbeat")
    broker.kill()
    _keeps_writing(file, 2)
    beat.signal(signal.SIGSTOP)
    _until(lambda: (heartbeat.age_seconds(file) or 0) > 2, "the end of the heartbeats")
    assert alive(1, **settings).returncode == 1


@pytest.mark.parametrize(("command", "path"), [("serve", "/healthz"), ("flower", "/healthcheck")])
def test_a_process_that_serves_http_is_alive_while_it_responds(
    command: str,
    path: str,
    make_settings: Settings,
    stores: Stores,
    broker: Redis,
    start: Start,
    alive: Alive,
    tmp_path: Path,
) -> None:
    """Such a process writes no heartbeat file."""
    settings = _worker_settings(make_settings(), stores, broker.url, tmp_path / "none") | {
        "flower_password": "secret"
    }
    assert alive(60, **settings).returncode == 1
    port = int(str(settings["port" if command == "serve" else "flower_port"]))
    start("services.cli", command, **settings)
    _until(lambda: http_probe.responds_ok("127.0.0.1", port, path), "an answer")
    assert alive(60, **settings).returncode == 0
    assert not (tmp_path / "none").exists()
