"""Loci's processes work behind PgBouncer, which lends its connections for one transaction at a time."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from sqlalchemy import text

from services.local import ports, unprivileged
from shared.foundation import config
from shared.infra.postgres import Postgres
from tests.conftest import running_gateway
from tests.deploy import managed_postgres
from tests.deploy.managed_postgres import PASSWORDS, ManagedPostgres
from tests.process_pool import ProcessPool

SERVER_CONNECTIONS = 3
LEAST_VERSION = (1, 21)  # older ones do not know prepared statements
SETTINGS = """
[databases]
loci = host={host} port={port} dbname=loci
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {size}
max_prepared_statements = 200
ignore_startup_parameters = role
"""


def _version() -> tuple[int, ...]:
    if (program := shutil.which("pgbouncer")) is None:
        return (0,)
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(number) for number in re.findall(r"\d+", output.splitlines()[0]))


pytestmark = pytest.mark.skipif(_version() < LEAST_VERSION, reason="no PgBouncer 1.21 or newer is installed")


@pytest.fixture(scope="module")
def server(process_pool: ProcessPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedPostgres]:
    with managed_postgres.running(tmp_path_factory.mktemp("pooler") / "postgres") as postgres:
        managed_postgres.loci(process_pool, "migrate", url=postgres.url("owner"))
        yield postgres


@pytest.fixture(scope="module")
def pooled_url(server: ManagedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PgBouncer that opens three connections."""
    folder, listen_port = tmp_path_factory.mktemp("pgbouncer"), ports.pick_free_port()
    (folder / "users").write_text(f'"loci_login" "{PASSWORDS["LOCI_LOGIN_PASSWORD"]}"\n')
    host, _, port = server.address.partition(":")
    values = {"host": host, "port": port, "listen_port": listen_port, "folder": folder}
    (folder / "pgbouncer.ini").write_text(SETTINGS.format(**values, size=SERVER_CONNECTIONS))
    program = Path(shutil.which("pgbouncer") or "")
    command = [*unprivileged.command_prefix(folder, program), str(program), str(folder / "pgbouncer.ini")]
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        stack.callback(process.terminate)
        yield server.url("login").replace(server.address, f"127.0.0.1:{listen_port}")


@asynccontextmanager
async def _pool(url: str) -> AsyncIterator[Postgres]:
    pool = Postgres(config.load(postgres_url=url))
    try:
        await _until_ready(pool)
        yield pool
    finally:
        await pool.close()


async def _until_ready(pool: Postgres) -> None:
    async with asyncio.timeout(20):
        while True:
            with suppress(Exception):
                return await pool.ping()
            await asyncio.sleep(0.05)


async def test_each_transaction_has_its_role_and_its_tenant_and_leaves_none_behind(pooled_url: str) -> None:
    statement = text("SELECT current_user, current_setting('loci.tenant', true), pg_backend_pid()")

    async def ask(pool: Postgres, tenant: str) -> tuple[str, str, int]:
        async with pool.for_tenant(tenant) as tx:
            return tuple((await tx.execute(statement)).one())

    async with _pool(pooled_url) as gateway_pool, _pool(pooled_url) as worker_pool:
        tenants = [f"tenant-{number}" for number in range(200)]
        asked = (ask(pool, tenant) for tenant in tenants for pool in (gateway_pool, worker_pool))
        answers = await asyncio.gather(*asked)
        assert [answer[:2] for answer in answers] == [("loci_app", t) for t in tenants for _ in range(2)]
        assert len({answer[2] for answer in answers}) <= SERVER_CONNECTIONS
        async with gateway_pool.autocommit() as tx:
            assert not (await tx.execute(statement)).one()[1]


async def test_the_lock_of_the_index_generations_is_held_to_the_end_of_the_transaction(
    pooled_url: str,
) -> None:
    async with _pool(pooled_url) as pool:
        entered = asyncio.Event()

        async def enter() -> None:
            async with pool.across_tenants(exclusive=True):
                entered.set()

        async with pool.for_tenant("one"):
            exclusive = asyncio.create_task(enter())
            async with pool.autocommit() as tx:
                await _until_waiting(tx)
            assert not entered.is_set()
        await asyncio.wait_for(exclusive, 10)


async def _until_waiting(connection: asyncpg.Connection) -> None:
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    async with asyncio.timeout(10):
        while not (await connection.execute(waiting)).scalar():  # noqa: ASYNC110  (another session's state)
            await asyncio.sleep(0.01)


async def test_a_gateway_saves_and_recalls(
    pooled_url: str, make_settings: Callable[..., config.Settings], tenant: str
) -> None:
    settings = make_settings(postgres_url=pooled_url, prefix="pooled")
    async with running_gateway(settings, tenant) as gateway:
        bodies = [{"content": f"Ada keeps the key number {number} in the drawer."} for number in range(40)]
        saved = await asyncio.gather(*(gateway.client.post("/v1/memories", json=body) for body in bodies))
        assert {response.status_code for response in saved} <= {200, 201}
        contexts = await asyncio.gather(*(_context(gateway.client, number) for number in range(20)))
        assert all(context["recalled"] for context in contexts)


async def _context(client: httpx.AsyncClient, number: int) -> dict[str, Any]:
    """Return the first context of a new session."""
    await client.post("/v1/sessions", json={"id": f"trip-{number}"})
    body = {"message": f"Where is the key number {number}?"}
    response = await client.post(f"/v1/sessions/trip-{number}/context", json=body)
    assert response.status_code == 200
    context: dict[str, Any] = response.json()
    return context
