"""Pods wait for the migration of their release, and the migration waits for Postgres."""

import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import asyncpg
import pytest

from services.local.postgres import Postgres
from tests.conftest import Stores
from tests.databases import run_in_thread
from tests.process_pool import ProcessPool


def _set_revision(url: str, revision: str) -> None:
    async def write() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("UPDATE alembic_version SET version_num = $1", revision)
        await connection.close()

    run_in_thread(write())


def test_waiting_ends_with_the_schema_of_this_or_a_newer_release(
    stores: Stores, process_pool: ProcessPool
) -> None:
    url = stores.create_database()

    def wait() -> CompletedProcess[str]:
        return process_pool.loci("wait-for-schema", "--timeout", "0", LOCI_POSTGRES_URL=url)

    assert wait().returncode == 0
    _set_revision(url, "a001")
    older = wait()
    assert older.returncode == 1
    assert "a001" in older.stderr
    assert "Traceback" not in older.stderr
    _set_revision(url, "9999")
    assert wait().returncode == 0


@pytest.fixture
def postgres_not_running(tmp_path: Path) -> Iterator[Postgres]:
    """A server that is not running, on a fixed port."""
    postgres = Postgres(tmp_path / "late", durable=False)
    yield postgres
    postgres.stop()


def test_a_migration_waits_for_postgres_and_pods_wait_for_the_migration(
    postgres_not_running: Postgres, process_pool: ProcessPool
) -> None:
    url = postgres_not_running.start()
    postgres_not_running.stop()
    refused = process_pool.loci("migrate", LOCI_POSTGRES_URL=url)
    assert refused.returncode != 0
    results: dict[str, CompletedProcess[str]] = {}

    def follow(name: str, *words: str) -> threading.Thread:
        thread = threading.Thread(
            target=lambda: results.update({name: process_pool.loci(*words, LOCI_POSTGRES_URL=url)})
        )
        thread.start()
        return thread

    threads = [follow("pod", "wait-for-schema", "--timeout", "60"), follow("job", "migrate", "--wait", "60")]
    postgres_not_running.start()
    for thread in threads:
        thread.join()
    assert {name: process.returncode for name, process in results.items()} == {"pod": 0, "job": 0}, results
