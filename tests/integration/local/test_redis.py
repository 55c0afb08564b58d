import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from services.local import ports, process_record
from services.local.redis import Redis


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path / "redis")
    yield server
    server.kill()


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, decode_responses=True)


def test_the_server_has_the_settings_that_working_memory_and_broker_need(server: Redis) -> None:
    with client(server.start()) as connection:
        assert connection.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert connection.config_get("appendonly") == {"appendonly": "yes"}
        assert connection.config_get("bind") == {"bind": ports.HOST}


def test_a_connection_needs_the_password(server: Redis, tmp_path: Path) -> None:
    parts = urlsplit(server.start())
    with (
        client(f"redis://{parts.hostname}:{parts.port}/0") as unauthenticated,
        pytest.raises(redis.AuthenticationError),
    ):
        unauthenticated.ping()
    assert stat.S_IMODE((tmp_path / "redis" / "redis.conf").stat().st_mode) == 0o600
    assert str(parts.password) not in Path(f"/proc/{server.pid}/cmdline").read_text()


def test_a_stop_and_a_start_keep_data_and_address(server: Redis, tmp_path: Path) -> None:
    url = server.start()
    with client(url) as connection:
        connection.set("kept", "42")
    server.stop()
    assert not server.alive
    restarted = Redis(tmp_path / "redis")
    try:
        assert restarted.start() == url
        with client(url) as connection:
            assert connection.get("kept") == "42"
    finally:
        restarted.kill()


def test_data_on_disk_is_kept_after_a_kill(server: Redis) -> None:
    url = server.start()
    with client(url) as connection:
        connection.set("kept", "42")
        assert connection.waitaof(1, 0, 5000)[0] == 1
    server.kill()
    assert not server.alive
    assert server.start() == url
    with client(url) as connection:
        assert connection.get("kept") == "42"


def test_a_port_in_use_is_named_in_the_error(tmp_path: Path) -> None:
    with socket.create_server((ports.HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ports.PortTaken, match=str(port)):
            Redis(tmp_path / "redis", port).start()


def test_a_second_server_on_the_same_folder_is_refused(server: Redis, tmp_path: Path) -> None:
    with client(server.start()) as connection:
        with pytest.raises(process_record.StillOwned):
            Redis(tmp_path / "redis").start()
        assert connection.ping()
