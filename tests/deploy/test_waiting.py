"""Issue 5, point 2: pods wait for the migration of their release, and the migration for Postgres."""

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess, run

import asyncpg
import pytest

from services.local.postgres import Postgres
from tests.conftest import Stores, run_apart


def _loci(*words: str, url: str) -> CompletedProcess[str]:
    env = os.environ | {"LOCI_POSTGRES_URL": url}
    command = [sys.executable, "-m", "services.cli", *words]
    return run(command, env=env, capture_output=True, text=True, check=False)


def _at(url: str, revision: str) -> None:
    async def write() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("UPDATE alembic_version SET version_num = $1", revision)
        await connection.close()

    run_apart(write())


def test_waiting_ends_at_this_release_or_a_newer_one_and_not_at_an_older(stores: Stores) -> None:
    url = stores.database()
    assert _loci("wait-for-schema", "--timeout", "0", url=url).returncode == 0
    _at(url, "a001")
    older = _loci("wait-for-schema", "--timeout", "0", url=url)
    assert older.returncode == 1
    assert "a001" in older.stderr
    assert "Traceback" not in older.stderr
    _at(url, "9999")
    assert _loci("wait-for-schema", "--timeout", "0", url=url).returncode == 0


@pytest.fixture
def late(tmp_path: Path) -> Iterator[Postgres]:
    """A server that is not started yet, on a port that is known."""
    postgres = Postgres(tmp_path / "late", durable=False)
    yield postgres
    postgres.stop()


def test_a_migration_waits_for_postgres_and_what_waits_for_the_schema_goes_on_then(late: Postgres) -> None:
    url = late.start()
    late.stop()
    refused = _loci("migrate", url=url)
    assert refused.returncode != 0
    ended: dict[str, CompletedProcess[str]] = {}

    def follow(name: str, *words: str) -> threading.Thread:
        thread = threading.Thread(target=lambda: ended.update({name: _loci(*words, url=url)}))
        thread.start()
        return thread

    threads = [follow("pod", "wait-for-schema", "--timeout", "60"), follow("job", "migrate", "--wait", "60")]
    late.start()
    for thread in threads:
        thread.join()
    assert {name: one.returncode for name, one in ended.items()} == {"pod": 0, "job": 0}, ended
