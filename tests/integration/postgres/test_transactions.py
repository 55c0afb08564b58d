"""A transaction is begun and ended by the driver: it is committed whole or not at all."""

import asyncio
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import ARRAY, Text, bindparam, select, text
from sqlalchemy.exc import IntegrityError

from shared.foundation import config, errors
from shared.infra.postgres import Postgres
from shared.platform.auth.table import tenant as tenant_table
from tests.conftest import Gateway

_ADD = text("INSERT INTO tenant (tenant) VALUES (:name)")
_NAMES = select(tenant_table.c.tenant).where(tenant_table.c.tenant == bindparam("name"))
_SETTING = text("SELECT current_setting('loci.tenant') AS tenant")


@pytest.fixture
def postgres(gateway: Gateway) -> Postgres:
    return gateway.resources.postgres


@pytest.fixture
def name() -> str:
    return f"t-{uuid4().hex[:12]}"


async def _exists(postgres: Postgres, name: str) -> bool:
    async with postgres.for_tenant(name) as tx:
        return await tx.fetch_one(_NAMES, {"name": name}) is not None


async def test_what_a_block_wrote_is_committed_at_its_end(postgres: Postgres, name: str) -> None:
    async with postgres.for_tenant(name) as tx:
        await tx.fetch(_ADD, {"name": name})
    assert await _exists(postgres, name)


async def test_nothing_of_a_block_that_raises_is_committed(postgres: Postgres, name: str) -> None:
    async def write_and_raise() -> None:
        async with postgres.for_tenant(name) as tx:
            await tx.fetch(_ADD, {"name": name})
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        await write_and_raise()
    assert not await _exists(postgres, name)


async def test_a_block_that_goes_on_after_a_failed_statement_is_no_success(
    postgres: Postgres, name: str
) -> None:
    async def write_twice() -> None:
        async with postgres.for_tenant(name) as tx:
            await tx.fetch(_ADD, {"name": name})
            with pytest.raises(IntegrityError):
                await tx.fetch(_ADD, {"name": name})

    with pytest.raises(RuntimeError, match="nothing was committed"):
        await write_twice()
    assert not await _exists(postgres, name)


async def test_a_cancelled_block_leaves_no_open_transaction(postgres: Postgres, name: str) -> None:
    has_written = asyncio.Event()

    async def write_and_wait() -> None:
        async with postgres.for_tenant(name) as tx:
            await tx.fetch(_ADD, {"name": name})
            has_written.set()
            await tx.fetch(text("SELECT pg_sleep(60)"))

    task = asyncio.create_task(write_and_wait())
    await has_written.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with postgres.for_tenant(name) as tx:
        # An open transaction would hold the name, and this would wait for it.
        await tx.fetch(_ADD, {"name": name})


async def test_both_ways_to_run_a_statement_share_the_transaction(postgres: Postgres, name: str) -> None:
    async def write_and_read() -> None:
        async with postgres.for_tenant(name) as tx:
            await tx.fetch(_ADD, {"name": name})
            assert await tx.scalar(_NAMES, {"name": name}) == name
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        await write_and_read()
    assert not await _exists(postgres, name)


@pytest.mark.parametrize("tenant_name", ["o'neill", "a''b", "x'); SELECT 1; --", "back\\slash"])
async def test_a_tenant_is_named_whatever_its_name_holds(postgres: Postgres, tenant_name: str) -> None:
    async with postgres.for_tenant(tenant_name) as tx:
        row = await tx.fetch_one(_SETTING)
    assert row is not None
    assert row["tenant"] == tenant_name


async def test_the_tenant_of_one_transaction_is_not_that_of_the_next(postgres: Postgres, name: str) -> None:
    async with postgres.for_tenant(name):
        pass
    async with postgres.autocommit() as tx:
        row = await tx.fetch_one(text("SELECT current_setting('loci.tenant', true) AS t"))
    assert row is not None
    assert not row["t"]


async def test_an_error_that_a_statement_meets_does_not_quote_its_values(
    postgres: Postgres, name: str
) -> None:
    async with postgres.for_tenant(name) as tx:
        await tx.fetch(_ADD, {"name": name})
    with pytest.raises(IntegrityError) as caught:
        async with postgres.for_tenant(name) as tx:
            await tx.fetch(_ADD, {"name": name})
    assert caught.value.params is None


async def test_connections_that_the_server_cut_are_replaced_before_anybody_gets_them(
    postgres: Postgres, name: str, gateway: Gateway
) -> None:
    async with postgres.for_tenant(name), postgres.for_tenant(name), postgres.autocommit():
        pass  # three connections are in the pool now
    await _cut_connections(gateway)
    async with postgres.for_tenant(name) as first, postgres.for_tenant(name), postgres.autocommit() as other:
        assert await first.fetch(text("SELECT 1"))
        assert await other.fetch(text("SELECT 1"))


async def test_a_transaction_that_the_server_cuts_is_unavailable_and_the_next_is_not(
    postgres: Postgres, name: str, gateway: Gateway
) -> None:
    async def go_on_after_a_cut() -> None:
        async with postgres.for_tenant(name) as tx:
            await _cut_connections(gateway)
            await tx.fetch(text("SELECT 1"))

    with pytest.raises(errors.Unavailable):
        await go_on_after_a_cut()
    assert not await _exists(postgres, name)


async def _cut_connections(gateway: Gateway) -> None:
    """End every connection of the gateway's database but the own."""
    address = config.require_setting(gateway.resources.settings.postgres_url, "LOCI_POSTGRES_URL")
    connection = await asyncpg.connect(address)
    try:
        await connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'loci' AND pid <> pg_backend_pid()"
        )
    finally:
        await connection.close()


async def test_values_are_sent_as_sqlalchemy_would_send_them(postgres: Postgres, name: str) -> None:
    listing = text("SELECT :names AS names").bindparams(bindparam("names", type_=ARRAY(Text)))
    async with postgres.for_tenant(name) as tx:
        row = await tx.fetch_one(listing, {"names": ["a", "b'"]})
    assert row is not None
    assert row["names"] == ["a", "b'"]
