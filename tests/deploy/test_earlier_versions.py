"""A database of an earlier development version is refused in a sentence that says what to do."""

from pathlib import Path

import asyncpg
import pytest

from services.local import ports
from tests.conftest import Stores
from tests.databases import run_in_thread
from tests.process_pool import ProcessPool

INSTRUCTIONS = ("made by an earlier development version", "loci export", "the data directory", "loci import")


@pytest.fixture
def earlier(stores: Stores) -> dict[str, str]:
    """The settings for a database whose last revision is 0008."""
    url = stores.create_database()
    run_in_thread(_set_revision(url, "0008"))
    return {
        "LOCI_POSTGRES_URL": url,
        "LOCI_REDIS_URL": stores.redis_url,
        "LOCI_QDRANT_URL": stores.qdrant_url,
        "COLUMNS": "1000",
    }


async def _set_revision(url: str, revision: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE alembic_version SET version_num = $1", revision)
    await connection.close()


def _assert_refused(process_pool: ProcessPool, settings: dict[str, str], *words: str) -> None:
    ended = process_pool.loci(*words, **settings)
    output = ended.stdout + ended.stderr
    assert ended.returncode == 1, output
    assert all(part in output for part in (*INSTRUCTIONS, "0008")), output
    assert "Traceback" not in output


@pytest.mark.parametrize("command", ["migrate", "doctor", "wait-for-schema"])
def test_a_command_refuses_the_database_and_says_what_to_do(
    process_pool: ProcessPool, earlier: dict[str, str], command: str
) -> None:
    _assert_refused(process_pool, earlier, command)


def test_up_refuses_the_database_and_says_what_to_do(
    process_pool: ProcessPool, earlier: dict[str, str], tmp_path: Path
) -> None:
    settings = {
        "LOCI_DATA_DIR": str(tmp_path),
        "LOCI_PORT": str(ports.pick_free_port()),
        "LOCI_FLOWER_PORT": str(ports.pick_free_port()),
    }
    _assert_refused(process_pool, earlier | settings, "up")


def test_a_refused_migration_leaves_the_database_as_it_was(
    process_pool: ProcessPool, earlier: dict[str, str]
) -> None:
    _assert_refused(process_pool, earlier, "migrate", "--wait", "5")
    revisions: list[str] = []

    async def read() -> None:
        connection = await asyncpg.connect(earlier["LOCI_POSTGRES_URL"])
        revisions.append(await connection.fetchval("SELECT version_num FROM alembic_version"))
        await connection.close()

    run_in_thread(read())
    assert revisions == ["0008"]
