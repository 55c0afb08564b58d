"""KEDA's query of Postgres, and the logins that an administrator creates with roles.sql."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from shared.foundation import config
from shared.infra.postgres import Postgres as Pool
from shared.platform.auth import api_keys
from tests.deploy import managed_postgres
from tests.deploy.managed_postgres import ManagedPostgres
from tests.deploy.variants import objects
from tests.process_pool import ProcessPool

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
def server(process_pool: ProcessPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedPostgres]:
    """A server of its own, because roles belong to a server; set up as deploy/README.md says."""
    with managed_postgres.running(tmp_path_factory.mktemp("roles") / "postgres") as postgres:
        managed_postgres.loci(process_pool, "migrate", url=postgres.url("owner"))
        yield postgres


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
    server: ManagedPostgres,
) -> None:
    async with _connected(server.url("owner")) as owner:
        await _insert_jobs(owner)
        async with _connected(server.url("scaler")) as scaler:
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


async def test_the_login_of_the_processes_works_and_may_act_only_as_their_role(
    server: ManagedPostgres, process_pool: ProcessPool
) -> None:
    settings = config.load(postgres_url=server.url("login"))
    managed_postgres.loci(process_pool, "wait-for-schema", url=server.url("login"))
    pool = Pool(settings)
    try:
        assert await api_keys.issue(pool, "acme")
    finally:
        await pool.close()
    async with _connected(server.url("login")) as plain:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await plain.execute("SET ROLE loci_owner")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await plain.fetchval(_query("enrichment"))
