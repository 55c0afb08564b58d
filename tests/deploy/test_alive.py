"""Issue 5, point 2: `loci alive` tells a process that hangs from one whose broker is away. Real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.local import http_probe, ports
from services.local.redis import Redis
from shared.foundation import config
from shared.infra import heartbeat
from tests.conftest import Stores

WITHIN = 120.0
Settings = Callable[..., config.Settings]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Redis]:
    """A broker of its own, that a test may stop."""
    redis = Redis(tmp_path / "broker")
    redis.start()
    yield redis
    redis.stop()


@contextmanager
def process(module: str, *words: str, **settings: object) -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen([sys.executable, "-m", module, *words], env=_env(**settings))
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def _env(**settings: object) -> dict[str, str]:
    return os.environ | {f"LOCI_{name.upper()}": str(value) for name, value in settings.items()}


def _until(holds: Callable[[], bool], what: str) -> None:
    """Wait on a condition, with a bound."""
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end, f"not within {WITHIN} s: {what}"
        time.sleep(0.05)


def _fresh(file: Path) -> bool:
    return (age := heartbeat.age_seconds(file)) is not None and age < 1


def _goes_on(file: Path, seconds: float) -> None:
    """See beats come for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        _until(lambda: _fresh(file), "a beat")


def _alive(max_age: float, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.cli", "alive", "--max-age", str(max_age)]
    return subprocess.run(command, env=_env(**settings), capture_output=True, text=True, check=False)


def test_a_worker_lives_while_its_broker_is_away_and_dies_when_its_loop_hangs(
    make_settings: Settings, stores: Stores, broker: Redis, tmp_path: Path
) -> None:
    file = tmp_path / "heartbeat"
    told = _told(make_settings(), stores, broker.url, file)
    assert _alive(60, **told).returncode == 1
    with process("tests.deploy.hanging", **told) as worker:
        _until(lambda: _fresh(file), "the first beat")
        assert _alive(60, **told).returncode == 0
        broker.kill()
        _goes_on(file, 3)
        broker.start()
        _goes_on(file, 1)
        worker.send_signal(signal.SIGUSR2)
        _until(lambda: (heartbeat.age_seconds(file) or 0) > 2, "beats end")
        judged = _alive(1, **told)
        assert worker.poll() is None, "the process itself is there all the while"
    assert judged.returncode == 1
    assert "heartbeat" in judged.stderr


def _told(settings: config.Settings, stores: Stores, broker: str, file: Path) -> dict[str, object]:
    assert settings.postgres_url is not None
    return {
        "postgres_url": settings.postgres_url.get_secret_value(),
        "redis_url": stores.redis_url,
        "qdrant_url": stores.qdrant_url,
        "broker_url": broker,
        "prefix": settings.prefix,
        "data_dir": settings.data_dir,
        "heartbeat_file": file,
        "port": ports.pick_free_port(),
        "flower_port": ports.pick_free_port(),
        "log_level": "ERROR",
    }


@pytest.mark.parametrize("role", ["worker", "beat"])
def test_a_process_that_starts_without_its_broker_lives_and_waits_for_it(
    role: str, make_settings: Settings, stores: Stores, tmp_path: Path
) -> None:
    file = tmp_path / "heartbeat"
    nowhere = f"redis://127.0.0.1:{ports.pick_free_port()}/1"
    told = _told(make_settings(), stores, nowhere, file)
    module, words = ("tests.deploy.hanging", ()) if role == "worker" else ("services.cli", ("beat",))
    with process(module, *words, **told) as started:
        _until(file.exists, "the first beat")
        first = file.read_text()
        _until(lambda: file.read_text() != first, "another beat")
        assert started.poll() is None
        assert _alive(60, **told).returncode == 0


def test_beat_beats_with_its_rings_and_a_frozen_one_is_dead(
    make_settings: Settings, stores: Stores, broker: Redis, tmp_path: Path
) -> None:
    file = tmp_path / "heartbeat"
    told = _told(make_settings(), stores, broker.url, file) | {"dispatch_interval": 0.2}
    with process("services.cli", "beat", **told) as beat:
        _until(lambda: _fresh(file), "the first beat")
        broker.kill()
        _goes_on(file, 2)
        beat.send_signal(signal.SIGSTOP)
        _until(lambda: (heartbeat.age_seconds(file) or 0) > 2, "beats end")
        assert _alive(1, **told).returncode == 1


@pytest.mark.parametrize(("command", "path"), [("serve", "/healthz"), ("flower", "/healthcheck")])
def test_a_process_that_answers_http_lives_by_its_answers(
    command: str, path: str, make_settings: Settings, stores: Stores, broker: Redis, tmp_path: Path
) -> None:
    """It writes no heartbeat: the file that the image names stays away."""
    told = _told(make_settings(), stores, broker.url, tmp_path / "none") | {"flower_password": "secret"}
    assert _alive(60, **told).returncode == 1
    port = int(str(told["port" if command == "serve" else "flower_port"]))
    with process("services.cli", command, **told):
        _until(lambda: http_probe.responds_ok("127.0.0.1", port, path), "an answer")
        assert _alive(60, **told).returncode == 0
    assert not (tmp_path / "none").exists()
