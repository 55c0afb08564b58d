import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from services.local import ports, process_record, unprivileged
from services.local.postgres import Postgres
from tests.integration.local.conditions import until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    return private / "postgres"


@pytest.fixture
def server(folder: Path) -> Iterator[Postgres]:
    server = Postgres(folder)
    yield server
    server.crash()


def query(url: str, *statements: str) -> object:
    async def run() -> object:
        connection = await asyncpg.connect(url, timeout=10)
        try:
            results = [await connection.fetch(statement) for statement in statements]
        finally:
            await connection.close()
        return results[-1][0][0] if results[-1] else None

    return asyncio.run(run())


def test_the_server_has_the_settings_that_the_schema_needs(server: Postgres) -> None:
    url = server.start()
    assert query(url, "SELECT current_user || '/' || current_database()") == "loci/loci"
    assert query(url, "SHOW server_encoding") == "UTF8"
    assert query(url, "SHOW timezone") == "UTC"
    assert query(url, "SHOW fsync") == "on"
    assert query(url, "SELECT lower('ÄÖ')") == "äö"
    assert query(url, "SHOW unix_socket_directories") == ""
    assert query(url, "SHOW listen_addresses") == ports.HOST


def test_a_connection_needs_the_password(server: Postgres, folder: Path) -> None:
    parts = urlsplit(server.start())
    with pytest.raises(asyncpg.InvalidPasswordError):
        query(f"postgresql://loci:wrong@{parts.hostname}:{parts.port}/loci")
    assert parts.password == (folder / "password").read_text()
    assert stat.S_IMODE((folder / "password").stat().st_mode) == 0o600
    # Only the postmaster's command line is checked: its children replace theirs by a title.
    assert str(parts.password) not in Path(f"/proc/{server.pid}/cmdline").read_text()


def test_a_stop_and_a_start_keep_data_port_and_password(server: Postgres, folder: Path) -> None:
    url = server.start()
    query(url, "CREATE TABLE kept AS SELECT 42 AS n")
    server.stop()
    assert not server.alive
    restarted = Postgres(folder)
    try:
        assert restarted.start() == url
        assert query(url, "SELECT n FROM kept") == 42
    finally:
        restarted.crash()


def test_a_crash_loses_nothing_that_was_committed(server: Postgres) -> None:
    url = server.start()
    query(url, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (42)")
    server.crash()
    assert not server.alive
    assert server.start() == url
    assert query(url, "SELECT n FROM kept") == 42


def test_the_server_starts_again_after_the_postmaster_was_killed(server: Postgres) -> None:
    url = server.start()
    query(url, "CREATE TABLE kept AS SELECT 42 AS n")
    server.signal(signal.SIGKILL)
    until(lambda: not server.alive)
    assert server.start() == url
    assert query(url, "SELECT n FROM kept") == 42


def test_a_lock_file_with_the_process_id_of_another_process_is_ignored(
    server: Postgres, folder: Path
) -> None:
    url = server.start()
    query(url, "CREATE TABLE kept AS SELECT 42 AS n")
    _crash_with_lock_of(server, folder, os.getpid())
    assert server.start() == url
    assert query(url, "SELECT n FROM kept") == 42


def _crash_with_lock_of(server: Postgres, folder: Path, pid: int) -> None:
    """End the server and leave its lock file behind, with another process id."""
    lock = folder / "cluster" / "postmaster.pid"
    _first, *rest = lock.read_text().splitlines()
    server.crash()
    lock.write_text("\n".join([str(pid), *rest, ""]))
    lock.chmod(0o600)
    os.chown(lock, (folder / "cluster").stat().st_uid, -1)


def test_a_killed_postmaster_whose_process_id_is_not_yet_free_does_not_prevent_the_start(
    server: Postgres, folder: Path
) -> None:
    url = server.start()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    until(lambda: process_record.start_identity(ended.pid) is None)  # ended, but nobody has waited for it
    _crash_with_lock_of(server, folder, ended.pid)
    assert server.start() == url
    ended.wait()


def test_the_start_waits_for_a_process_that_still_uses_the_data(server: Postgres, folder: Path) -> None:
    url = server.start()
    cluster = folder / "cluster"
    with subprocess.Popen([sys.executable, "-c", "input()"], cwd=cluster, stdin=subprocess.PIPE) as dying:
        until(lambda: process_record.is_working_directory(cluster))
        _crash_with_lock_of(server, folder, dying.pid)
        ending = threading.Timer(1.0, dying.kill)
        ending.start()
        assert server.start() == url
        assert not ending.is_alive(), "the server started although the data was in use"


def test_a_creation_that_was_killed_is_started_again(server: Postgres, folder: Path) -> None:
    (folder / "cluster.new" / "base").mkdir(parents=True)
    assert query(server.start(), "SELECT 1") == 1


def test_a_port_in_use_is_named_in_the_error(folder: Path) -> None:
    with socket.create_server((ports.HOST, 0)) as other:
        port = other.getsockname()[1]
        server = Postgres(folder, port)
        with pytest.raises(ports.PortTaken, match=str(port)):
            server.start()
    assert not server.alive


def test_a_second_server_on_the_same_folder_is_refused(server: Postgres, folder: Path) -> None:
    url = server.start()
    with pytest.raises(process_record.StillOwned):
        Postgres(folder).start()
    assert query(url, "SELECT 1") == 1


LEAVE = """
import os, sys
from pathlib import Path
from services.local.postgres import Postgres
print(Postgres(Path(sys.argv[1])).start(), flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_server_that_outlived_a_killed_owner_is_replaced(server: Postgres, folder: Path) -> None:
    owner = subprocess.run([sys.executable, "-c", LEAVE, str(folder)], check=False, stdout=subprocess.PIPE)
    leftover_pid = json.loads((folder / "process.json").read_text())["pid"]
    assert process_record.start_identity(leftover_pid) is not None
    assert server.start() == owner.stdout.decode().strip()
    assert process_record.start_identity(leftover_pid) is None


def test_the_log_never_contains_the_values_of_a_failing_statement(server: Postgres, folder: Path) -> None:
    url = server.start()
    with pytest.raises(asyncpg.UniqueViolationError):
        query(url, "CREATE TABLE t (a text UNIQUE)", *["INSERT INTO t VALUES ('a secret')"] * 2)
    assert "a secret" not in (folder / "log").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
def test_root_switches_to_nobody_where_namespaces_are_forbidden(
    server: Postgres, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.start()
    query(url, "CREATE TABLE kept AS SELECT 42 AS n")
    server.stop()
    with monkeypatch.context() as forbidden:
        forbidden.setattr(unprivileged, "_namespace", lambda: ["false"])
        assert server.start() == url
        assert query(url, "SELECT n FROM kept") == 42
        assert (folder / "cluster").stat().st_uid != 0
        assert Path(f"/proc/{server.pid}").stat().st_uid != 0
        server.stop()
    assert server.start() == url
    assert query(url, "SELECT n FROM kept") == 42
    assert (folder / "cluster").stat().st_uid == 0
