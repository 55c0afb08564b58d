"""Connections are lent again as they were: without a transaction, not too many, and none that is broken."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import select

from shared.foundation import config, errors
from shared.infra.connection_pool import ConnectionPool
from shared.infra.postgres import create_engine
from shared.infra.prepared import driver_of
from tests.conftest import Gateway


@asynccontextmanager
async def open_pool(gateway: Gateway, *, surplus_seconds: float) -> AsyncIterator[ConnectionPool]:
    """Open a pool that lends two connections, and keeps one."""
    url = config.require_setting(gateway.resources.settings.postgres_url, "LOCI_POSTGRES_URL")
    engine = create_engine(url, "", 2, isolation_level="AUTOCOMMIT")
    pool = ConnectionPool(engine, kept=1, most=2, timeout=0.05, surplus_seconds=surplus_seconds)
    try:
        yield pool
    finally:
        await pool.close()


@pytest.fixture
async def pool(gateway: Gateway) -> AsyncIterator[ConnectionPool]:
    """A pool that closes its second connection when it is returned."""
    async with open_pool(gateway, surplus_seconds=0) as pool:
        yield pool


async def test_the_connection_that_was_used_last_is_lent_again_without_a_transaction(
    pool: ConnectionPool,
) -> None:
    async with pool.lend() as first:
        await first.execute(select(1))
        assert first.in_transaction()
    async with pool.lend() as second:
        assert second is first
        assert not second.in_transaction()


async def test_of_many_connections_a_few_are_kept(pool: ConnectionPool) -> None:
    async with pool.lend() as first, pool.lend() as second:
        drivers = [driver_of(first), driver_of(second)]
    assert sorted(driver.is_closed() for driver in drivers) == [False, True]
    await pool.close()
    assert all(driver.is_closed() for driver in drivers)


async def test_one_more_than_is_kept_is_lent_again_until_it_has_been_idle_for_long(gateway: Gateway) -> None:
    async with open_pool(gateway, surplus_seconds=0.2) as pool:
        async with pool.lend() as first, pool.lend() as second:
            pass
        async with pool.lend() as third, pool.lend() as fourth:
            assert {id(third), id(fourth)} == {id(first), id(second)}
        idle_longest = driver_of(fourth)  # it was returned first
        async with asyncio.timeout(10):
            while not idle_longest.is_closed():
                async with pool.lend() as last:
                    assert last is third
                await asyncio.sleep(0.01)


async def test_who_waits_gets_the_next_free_connection_or_an_error_after_the_timeout(
    pool: ConnectionPool,
) -> None:
    async def borrow() -> None:
        async with pool.lend():
            pass

    async with pool.lend():
        async with pool.lend():
            with pytest.raises(errors.Unavailable):
                await borrow()
            waiting = asyncio.create_task(borrow())
            await asyncio.sleep(0)
        await waiting
