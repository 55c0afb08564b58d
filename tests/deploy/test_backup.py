"""The backup role dumps every row of a Postgres without a superuser, and the owner restores them."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from tests.deploy import managed_postgres
from tests.deploy.managed_postgres import ManagedPostgres, run
from tests.isolation import raw_rows
from tests.isolation.ids import unused_ids
from tests.process_pool import ProcessPool
from tests.state import StateInspector

TENANTS = ("one", "two")
DUMP = ("pg_dump", "--enable-row-security", "--format=custom")
RESTORE = ("pg_restore", "--clean", "--if-exists", "--exit-on-error")


@pytest.fixture(scope="module")
def server(process_pool: ProcessPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedPostgres]:
    with managed_postgres.running(tmp_path_factory.mktemp("backup") / "postgres") as postgres:
        managed_postgres.loci(process_pool, "migrate", url=postgres.url("owner"))
        yield postgres


@asynccontextmanager
async def _inspected(url: str) -> AsyncIterator[StateInspector]:
    """A connection as the superuser, to whom no policy applies."""
    connection = await asyncpg.connect(url)
    try:
        yield StateInspector(connection, None, None, "")  # type: ignore[arg-type]  # only Postgres is used
    finally:
        await connection.close()


async def _fill(url: str) -> None:
    """Give each tenant a row in every table. References between them are valid, as a restore checks them."""
    async with _inspected(url) as inspector:
        for tenant in TENANTS:
            ids = replace(unused_ids(), session=tenant, agent=tenant, memory=tenant)
            await raw_rows.fill(inspector, tenant, ids, tenant)
            await inspector.postgres.execute(
                "UPDATE dream_run SET id = $1 WHERE tenant = $2", ids.run, tenant
            )
        await inspector.postgres.execute(
            "INSERT INTO index_generation (kind, collection, state) VALUES ('memory', 'c', 'live')"
        )


async def _contents(url: str) -> dict[str, list[str]]:
    """Return the rows of every table, as sorted texts."""
    async with _inspected(url) as inspector:
        tables = await inspector.postgres.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {
            row["tablename"]: sorted(
                text
                for (text,) in await inspector.postgres.fetch(
                    f"SELECT to_jsonb(t)::text FROM {row['tablename']} t"  # noqa: S608
                )
            )
            for row in tables
        }


async def _tenant_tables(url: str) -> list[str]:
    async with _inspected(url) as inspector:
        return await inspector.tables()


async def _rules(url: str) -> list[tuple[str, ...]]:
    """Return the policies and the grants."""
    async with _inspected(url) as inspector:
        policies = await inspector.postgres.fetch(
            "SELECT tablename, policyname, roles::text, cmd, qual FROM pg_policies ORDER BY 1, 2"
        )
        grants = await inspector.postgres.fetch(
            "SELECT table_name, grantee, privilege_type FROM information_schema.role_table_grants"
            " WHERE table_schema = 'public' ORDER BY 1, 2, 3"
        )
        return [tuple(row) for row in (*policies, *grants)]


async def test_what_the_backup_role_dumps_the_owner_restores_with_every_row_policy_and_grant(
    server: ManagedPostgres, process_pool: ProcessPool, tmp_path: Path
) -> None:
    await _fill(server.url("loci"))
    before, rules = await _contents(server.url("loci")), await _rules(server.url("loci"))
    assert all(len(before[table]) == len(TENANTS) for table in await _tenant_tables(server.url("loci")))
    run(*DUMP, f"--file={tmp_path / 'dump'}", server.url("backup"))
    with managed_postgres.running(tmp_path / "new") as restored:
        for _ in ("into an empty database", "over the first one"):
            run(*RESTORE, f"--dbname={restored.url('owner')}", str(tmp_path / "dump"))
        assert await _contents(restored.url("loci")) == before
        assert await _rules(restored.url("loci")) == rules
        managed_postgres.loci(process_pool, "migrate", url=restored.url("owner"))
        managed_postgres.loci(process_pool, "wait-for-schema", "--timeout", "0", url=restored.url("login"))


def test_a_dump_by_the_owner_is_refused_because_it_would_leave_out_rows(
    server: ManagedPostgres, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match="row-level security"):
        run("pg_dump", f"--file={tmp_path / 'dump'}", server.url("owner"))


async def test_the_backup_role_writes_no_table_and_acts_as_no_other_role(server: ManagedPostgres) -> None:
    tables = await _tenant_tables(server.url("loci"))
    connection = await asyncpg.connect(server.url("backup"))
    try:
        for statement in (*(f"DELETE FROM {table}" for table in tables), "SET ROLE loci_owner"):  # noqa: S608
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
    finally:
        await connection.close()


async def test_a_dump_fails_until_a_backup_role_made_after_the_migration_has_its_policies(
    process_pool: ProcessPool, tmp_path: Path, repository: Path
) -> None:
    with managed_postgres.running(tmp_path / "postgres") as server:
        server.psql("DROP ROLE loci_backup", url=server.url("administrator", "postgres"))
        managed_postgres.loci(process_pool, "migrate", url=server.url("owner"))
        server.psql(
            "CREATE ROLE loci_backup LOGIN PASSWORD 'backupsecret'",
            url=server.url("administrator", "postgres"),
        )
        with pytest.raises(AssertionError, match="permission denied for table"):
            run(*DUMP, f"--file={tmp_path / 'dump'}", server.url("backup"))
        [statements] = re.findall(r"```sql\n(DO .+?)```", _operations(repository), re.DOTALL)
        server.psql(statements, url=server.url("owner"))
        await _fill(server.url("loci"))
        assert _dumped_rows(server.url("backup")) == _dumped_rows(server.url("loci"))


def _operations(repository: Path) -> str:
    return (repository / "docs" / "OPERATIONS.md").read_text()


def _dumped_rows(url: str) -> list[str]:
    """Return the statements that insert the rows and set the sequences, sorted."""
    dump = run("pg_dump", "--enable-row-security", "--data-only", "--inserts", url)
    return sorted(
        line for line in dump.splitlines() if line.startswith(("INSERT", "SELECT pg_catalog.setval"))
    )
