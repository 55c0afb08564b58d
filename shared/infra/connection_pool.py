"""Lend the connections of an engine, in the order in which they are asked for.

SQLAlchemy's pool may lend to a new task first, so that under load some would wait until they give up. And to
take a connection from it and to return it takes as long as four short statements: so those that were used
last are kept here.

A connection in use beyond those that are kept stays open for some seconds afterwards. Under load the number
in use rises and falls within milliseconds: closed at once, many would be opened and would prepare their
statements again all the time.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from shared.infra.postgres_failures import failures_as_unavailable
from shared.infra.prepared import driver_of

_SURPLUS_SECONDS = 10.0


class _Idle(NamedTuple):
    """A connection that nobody uses, and since when, as `time.monotonic` counts."""

    connection: AsyncConnection
    since: float


class ConnectionPool:
    """Lends at most `most` connections at once, and keeps `kept` of them open.

    Of the others, one that was idle for `surplus_seconds` is closed when another one is returned.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        kept: int,
        most: int,
        timeout: float,
        surplus_seconds: float = _SURPLUS_SECONDS,
    ) -> None:
        self._engine = engine
        self._kept = kept
        self._surplus_seconds = surplus_seconds
        self._timeout = timeout
        self._places = asyncio.Semaphore(most)
        self._idle: list[_Idle] = []
        """The one that was used last is at the end, and is lent next."""

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection for the length of a block.

        Raises errors.Unavailable if Postgres cannot serve, or if none is free within `timeout` seconds.
        """
        with failures_as_unavailable():
            if self._places.locked():
                async with asyncio.timeout(self._timeout):
                    await self._places.acquire()
            else:
                await self._places.acquire()
            try:
                connection = await self._open()
                try:
                    yield connection
                finally:
                    await self._keep_or_close(connection)
            finally:
                self._places.release()

    async def _open(self) -> AsyncConnection:
        """Return an open connection: one that is kept, unless the server has closed it, or a new one."""
        while self._idle:
            connection = self._idle.pop().connection
            if not driver_of(connection).is_closed():
                return connection
            await _close(connection)
        return await self._engine.connect()

    async def _keep_or_close(self, connection: AsyncConnection) -> None:
        if connection.invalidated:
            await _close(connection)
            return
        if connection.in_transaction():  # SQLAlchemy takes a statement that it has run for the begin of one
            await connection.rollback()
        self._idle.append(_Idle(connection, time.monotonic()))
        if self._has_surplus():
            await _close(self._idle.pop(0).connection)

    def _has_surplus(self) -> bool:
        """Return whether the connection that has been idle for longest is to be closed."""
        idle_seconds = time.monotonic() - self._idle[0].since
        return len(self._idle) > self._kept and idle_seconds >= self._surplus_seconds

    async def close(self) -> None:
        """Close every connection."""
        while self._idle:
            await self._idle.pop().connection.close()
        await self._engine.dispose()


async def _close(connection: AsyncConnection) -> None:
    """Close a connection, so that SQLAlchemy's pool does not keep it."""
    if not connection.invalidated:
        await connection.invalidate()
    await connection.close()
