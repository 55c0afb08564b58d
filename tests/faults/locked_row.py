"""Hold the lock of a row that a program needs, so that it can be killed just before it stores something."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg

from tests.agent import wait_until
from tests.faults.processes import Fleet


@asynccontextmanager
async def locked_row(
    fleet: Fleet, tenant: str, table: str, record_id: str
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Lock a row during the block. Yield a function that returns once a transaction waits for a lock."""
    address = fleet.settings.postgres_url
    assert address is not None
    holder, observer = [await asyncpg.connect(address.get_secret_value()) for _ in range(2)]

    async def is_waiting() -> bool:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return bool(await observer.fetchval(f"{waiting} AND datname = current_database()"))

    async def wait() -> None:
        await wait_until(is_waiting)

    try:
        async with holder.transaction():
            await holder.execute("SELECT set_config('loci.tenant', $1, true)", tenant)
            await holder.execute(f"SELECT FROM {table} WHERE id = $1 FOR UPDATE", record_id)
            yield wait
    finally:
        for connection in (holder, observer):
            await connection.close()
