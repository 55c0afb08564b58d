"""`loci alive` distinguishes a process that hangs from one without its broker. Runs real processes."""

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
    """A broker that a test may stop."""
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


def _alive(max_age: float, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.cli", "alive", "--max-age", str(max_age)]
    return subprocess.run(command, env=_env(**settings), capture_output=True, text=True, check=False)


def test_a_worker_is_alive_without_its_broker_and_dead_when_its_loop_hangs(
    make_settings: Settings, stores: Stores, broker: Redis, tmp_path: Path
) -> None:
    file = tmp_path / "heartbeat"
    settings = _worker_settings(make_settings(), stores, broker.url, file)
    assert _alive(60, **settings).returncode == 1
    with process("tests.deploy.hanging", **settings) as worker:
        _until(lambda: _is_recent(file), "the first heartbeat")
        assert _alive(60, **settings).returncode == 0
        broker.kill()
        _keeps_writing(file, 3)
        broker.start()
        _keeps_writing(file, 1)
        worker.send_signal(signal.SIGUSR2)
        _until(lambda: (heartbeat.age_seconds(file) or 0) > 2, "the end of the heartbeats")
        probe = _alive(1, **settings)
        assert worker.poll() is None, "the process itself still runs"
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
        "log_level": "ERROR",
    }


@pytest.mark.parametrize("role", ["worker", "beat"])
def test_a_process_that_starts_without_its_broker_is_alive_and_waits_for_it(
    role: str, make_settings: Settings, stores: Stores, tmp_path: Path
) -> None:
    file = tmp_path / "heartbeat"
    unused_url = f"redis://127.0.0.1:{ports.pick_free_port()}/1"
    settings = _worker_settings(make_settings(), stores, unused_url, file)
    module, words = ("tests.deploy.hanging", ()) if role == "worker" else ("services.cli", ("beat",))
    with process(module, *words, **settings) as started:
        _until(file.exists, "the first heartbeat")
        first = file.read_text()
        _until(lambda: file.read_text() != first, "another heartbeat")
        assert started.poll() is None
        assert _alive(60, **settings).returncode == 0


def test_beat_writes_heartbeats_and_a_frozen_beat_is_dead(
    make_settings: Settings, stores: Stores, broker: Redis, tmp_path: Path
) -> None:
    file = tmp_path / "heartbeat"
    settings = _worker_settings(make_settings(), stores, broker.url, file) | {"dispatch_interval": 0.2}
    with process("services.cli", "beat", **settings) as beat:
        _until(lambda: _is_recent(file), "the first heartbeat")
        broker.kill()
        _keeps_writing(file, 2)
        beat.send_signal(signal.SIGSTOP)
        _until(lambda: (heartbeat.age_seconds(file) or 0) > 2, "the end of the heartbeats")
        assert _alive(1, **settings).returncode == 1


@pytest.mark.parametrize(("command", "path"), [("serve", "/healthz"), ("flower", "/healthcheck")])
def test_a_process_that_serves_http_is_alive_while_it_responds(
    command: str, path: str, make_settings: Settings, stores: Stores, broker: Redis, tmp_path: Path
) -> None:
    """Such a process writes no heartbeat file."""
    settings = _worker_settings(make_settings(), stores, broker.url, tmp_path / "none") | {
        "flower_password": "secret"
    }
    assert _alive(60, **settings).returncode == 1
    port = int(str(settings["port" if command == "serve" else "flower_port"]))
    with process("services.cli", command, **settings):
        _until(lambda: http_probe.responds_ok("127.0.0.1", port, path), "an answer")
        assert _alive(60, **settings).returncode == 0
    assert not (tmp_path / "none").exists()
