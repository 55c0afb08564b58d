"""What statements run on: a transaction over the rows of one tenant, or one across tenants.

A statement says by its parameter which of the two it needs. The tenant is no parameter beside it, because the
transaction has named it already, and row-level security shows no row of another. A statement that both need
takes a `Connection`, and the tenant if it is about one.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Executable
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra import prepared
from shared.infra.prepared import Row


class Connection:
    """A connection that runs statements.

    `execute`, `scalar` and `scalars` are SQLAlchemy's, for statements that differ from call to call.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.scalar = connection.scalar
        self.scalars = connection.scalars
        self.begin_nested = connection.begin_nested
        self.run_sync = connection.run_sync

    async def fetch(self, statement: Executable, values: Mapping[str, Any] | None = None) -> list[Row]:
        """Run a constant statement and return its rows, as `prepared.fetch` does."""
        return await prepared.fetch(self.connection, statement, values)

    async def fetch_one(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Row | None:
        """Run a constant statement and return its first row, or None."""
        return await prepared.fetch_one(self.connection, statement, values)


class Transaction(Connection):
    """A transaction over the rows of one tenant."""

    def __init__(self, connection: AsyncConnection, tenant: str) -> None:
        super().__init__(connection)
        self.tenant = tenant


class FleetTransaction(Connection):
    """A transaction across tenants, over the tables without content."""
