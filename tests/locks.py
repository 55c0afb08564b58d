"""Wait until one transaction waits for another."""

import asyncio
from typing import Any

from sqlalchemy import func, select, text

from shared.infra.transaction import Connection

_COUNT_WAITING = text(
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND :holder = ANY (pg_blocking_pids(pid))"
)
_LONGEST_SECONDS = 30


async def wait_until_blocked(holding: Connection, task: "asyncio.Future[Any]") -> None:
    """Return once a transaction of the task waits for a lock of this one. Fail if the task ends before."""
    holder = await holding.scalar(select(func.pg_backend_pid()))
    async with asyncio.timeout(_LONGEST_SECONDS):
        while not await holding.scalar(_COUNT_WAITING, {"holder": holder}):
            assert not task.done(), "it did not wait"
