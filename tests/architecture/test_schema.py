"""Code and migrations agree, and row-level security protects every table that has a tenant."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from tests.conftest import Stores
from tests.isolation import raw_rows
from tests.isolation.ids import unused_ids
from tests.state import StateInspector

OWNER, OTHER, ROLE = "owner", "other", "loci_app"
# Tables without a tenant, because they have no content.
WITHOUT_TENANT = {
    *("alembic_version", "fleet_counter", "index_generation", "model_pause", "periodic_run"),
    *("judge_calibration", "judge_calibration_spend"),
}
Described = list[tuple[Any, ...]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def filled(stores: Stores) -> AsyncIterator[asyncpg.Connection]:
    """A connection as the owner to a database in which a tenant has a row in every table."""
    connection = await asyncpg.connect(stores.create_database())
    try:
        inspector = StateInspector(connection, None, None, "")  # type: ignore[arg-type]  # only Postgres is used
        await raw_rows.fill(inspector, OWNER, unused_ids(), "secret")
        yield connection
    finally:
        await connection.close()


def _alembic(repository: Path, url: str, *words: str) -> None:
    env = os.environ | {"LOCI_POSTGRES_URL": url}
    command = [sys.executable, "-m", "alembic", *words]
    result = subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_alembic_finds_no_difference_between_the_tables_and_the_schema(
    stores: Stores, repository: Path
) -> None:
    _alembic(repository, stores.create_database(), "check")


async def test_every_migration_can_be_undone_and_repeated(stores: Stores, repository: Path) -> None:
    url = stores.create_database()
    before = await _described(url)
    _alembic(repository, url, "downgrade", "base")
    remaining = {row[0] for row in await _described(url)}
    assert remaining == {"alembic_version"}
    _alembic(repository, url, "upgrade", "head")
    assert await _described(url) == before


async def _described(url: str) -> Described:
    """Return columns, indexes, constraints, policies, grants, functions and triggers."""
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for query in _DESCRIPTIONS for row in await connection.fetch(query)]
    finally:
        await connection.close()


_COLUMNS = """
    SELECT table_name, column_name, udt_name, is_nullable, column_default, generation_expression
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2
"""
_INDEXES = "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2"
_CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2
"""
_POLICIES = "SELECT tablename, policyname, roles::text, cmd, qual, with_check FROM pg_policies ORDER BY 1, 2"
_GRANTS = """
    SELECT table_name, grantee, privilege_type FROM information_schema.role_table_grants
    WHERE table_schema = 'public' ORDER BY 1, 2, 3
"""
_FUNCTIONS = """
    SELECT proname, proacl::text, prosrc FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND prosecdef ORDER BY 1
"""
_TRIGGERS = """
    SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(t.oid), prosrc FROM pg_trigger t
    JOIN pg_proc p ON p.oid = tgfoid WHERE NOT tgisinternal ORDER BY 1, 2
"""
_DESCRIPTIONS = (_COLUMNS, _INDEXES, _CONSTRAINTS, _POLICIES, _GRANTS, _FUNCTIONS, _TRIGGERS)


async def test_every_table_has_a_tenant_or_is_listed_as_without_content(filled: asyncpg.Connection) -> None:
    tables = {
        row[0]
        for row in await filled.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
    }
    assert tables - set(await _tenant_tables(filled)) == WITHOUT_TENANT


async def _tenant_tables(connection: asyncpg.Connection) -> list[str]:
    return await StateInspector(connection, None, None, "").tables()  # type: ignore[arg-type]


async def test_every_table_of_a_tenant_forces_row_level_security(filled: asyncpg.Connection) -> None:
    secured = await filled.fetch(
        "SELECT relname FROM pg_class c WHERE relrowsecurity AND relforcerowsecurity"
        " AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid) ORDER BY 1"
    )
    assert [row["relname"] for row in secured] == await _tenant_tables(filled)


async def test_the_role_of_the_processes_owns_nothing_and_bypasses_no_policy(
    filled: asyncpg.Connection,
) -> None:
    role = await filled.fetchrow("SELECT oid, * FROM pg_roles WHERE rolname = $1", ROLE)
    assert not any(role[right] for right in ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb"))
    assert not await filled.fetch("SELECT relname FROM pg_class WHERE relowner = $1", role["oid"])
    parents = await filled.fetch("SELECT roleid FROM pg_auth_members WHERE member = $1", role["oid"])
    assert not parents, "the role could switch to a role that it is a member of"


async def test_functions_that_act_as_their_owner_set_their_search_path(filled: asyncpg.Connection) -> None:
    """Otherwise a caller's search_path could replace their tables."""
    definers = await filled.fetch(
        "SELECT proname, proconfig::text FROM pg_proc"
        " WHERE prosecdef AND pronamespace = 'public'::regnamespace ORDER BY 1"
    )
    assert [row["proname"] for row in definers] == ["find_api_key", "job_backlog", "shared_patterns"]
    assert all("search_path=" in (row["proconfig"] or "") for row in definers)


async def test_a_transaction_sees_its_tenants_rows_and_without_a_tenant_none(
    filled: asyncpg.Connection,
) -> None:
    for table in await _tenant_tables(filled):
        assert await _visible(filled, table, OWNER) > 0, table
        for name in ("", OTHER, OWNER.upper(), f"{OWNER}/x", "%"):
            assert await _visible(filled, table, name) == 0, f"{table} to {name!r}"
        assert await _visible(filled, table, None) == 0, table


async def _visible(connection: asyncpg.Connection, table: str, tenant: str | None) -> int:
    async with _rolled_back(connection, tenant):
        count: int = await connection.fetchval(f"SELECT count(*) FROM {table}")  # noqa: S608
        return count


class _rolled_back:  # noqa: N801  (reads as a statement)
    """A transaction as the application's role, for one tenant or none, that is rolled back."""

    def __init__(self, connection: asyncpg.Connection, tenant: str | None) -> None:
        self._connection = connection
        self._tenant = tenant
        self._transaction = connection.transaction()

    async def __aenter__(self) -> None:
        await self._transaction.start()
        await self._connection.execute(f"SET LOCAL ROLE {ROLE}")
        if self._tenant is not None:
            await self._connection.execute("SELECT set_config('loci.tenant', $1, true)", self._tenant)

    async def __aexit__(self, *_: object) -> None:
        await self._transaction.rollback()


async def test_only_tables_without_content_are_visible_across_tenants(filled: asyncpg.Connection) -> None:
    """Only tables without content are visible across tenants."""
    open_ = [table for table in await _tenant_tables(filled) if await _visible(filled, table, "*")]
    assert open_ == ["job", "tenant"]


async def test_a_row_can_neither_be_moved_to_another_tenant_nor_be_deleted_by_one(
    filled: asyncpg.Connection,
) -> None:
    for table in await _tenant_tables(filled):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with _rolled_back(filled, OWNER):
                await filled.execute(f"UPDATE {table} SET tenant = '{OTHER}'")  # noqa: S608
        async with _rolled_back(filled, OTHER):
            assert await filled.execute(f"DELETE FROM {table}") == "DELETE 0", table  # noqa: S608
