"""Run statements that are compiled once, on the driver's own connection.

SQLAlchemy needs five to eight times the processor time of the driver to build, compile and run a short
statement. That is nothing for most requests, but a context runs about twenty. So the statements of the
hot paths are constants of their modules: SQLAlchemy compiles each at its first use, and the driver runs
it in the transaction of the connection that it is given.

The constants are `text(…)` or a statement with `bindparam`s. Statements that differ from call to call go to
`connection.execute` as usual; both kinds can be used in one transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import asyncpg
import orjson
from sqlalchemy import BindParameter, Executable, RowMapping, bindparam
from sqlalchemy.dialects.postgresql.asyncpg import PGCompiler_asyncpg, dialect
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope

Row = RowMapping
"""A row, whose values are read by name: `row["id"]`. The driver's rows are read as SQLAlchemy's are."""
_DIALECT = dialect(json_serializer=lambda value: orjson.dumps(value).decode())  # type: ignore[no-untyped-call]
_compiled: dict[Executable, "_Compiled"] = {}


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The SQL with numbered parameters, their names in order, and what prepares the value of some."""

    sql: str
    names: Sequence[str]
    fixed: Mapping[str, Any]
    processors: Mapping[str, Any]

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        named = {**self.fixed, **values}
        return [
            self.processors[name](named[name]) if name in self.processors else named[name]
            for name in self.names
        ]


class _NamedScope(NamedTuple):
    tenant: BindParameter[Any]
    agent_id: BindParameter[Any]
    user_id: BindParameter[Any] | None


def named_scope(*, has_user: bool = True) -> Scope:
    """Return a scope with parameters in place of values, for the conditions of a constant statement.

    Each call gets its values from `scope_values`. Without `has_user`, the scope has no user.
    """
    user_id: BindParameter[Any] | None = bindparam("user_id") if has_user else None
    return cast("Scope", _NamedScope(bindparam("tenant"), bindparam("agent_id"), user_id))


def scope_values(scope: Scope) -> dict[str, str | None]:
    """Return the parts of a scope by the names of the columns and the parameters."""
    return {"tenant": scope.tenant, "agent_id": scope.agent_id, "user_id": scope.user_id}


async def fetch(
    connection: AsyncConnection, statement: Executable, values: Mapping[str, Any] | None = None
) -> list[Row]:
    """Run a constant statement and return its rows. Raises sqlalchemy.exc.IntegrityError as SQLAlchemy does.

    `values` are the parameters by name.
    """
    compiled = _compiled.get(statement) or _compile(statement)
    try:
        return await send(connection, compiled.sql, compiled.arguments(values or {}))
    except asyncpg.IntegrityConstraintViolationError as error:
        # Without the values, which may be somebody's text.
        raise IntegrityError(compiled.sql, None, error, hide_parameters=True) from error


async def fetch_one(
    connection: AsyncConnection, statement: Executable, values: Mapping[str, Any] | None = None
) -> Row | None:
    """Run a constant statement and return its first row, or None."""
    return next(iter(await fetch(connection, statement, values)), None)


async def send(connection: AsyncConnection, sql: str, arguments: Sequence[Any]) -> list[Row]:
    """Send SQL to the driver. Tests replace this function to see or to change what is sent."""
    rows: list[Row] = await driver_of(connection).fetch(sql, *arguments)
    return rows


def driver_of(connection: AsyncConnection) -> asyncpg.Connection:
    """Return the driver's connection behind one of SQLAlchemy's."""
    if connection.sync_connection is None:
        raise RuntimeError("the connection is closed")
    return connection.sync_connection.connection.driver_connection


def _compile(statement: Executable) -> _Compiled:
    compiler = cast("PGCompiler_asyncpg", statement.compile(dialect=_DIALECT))  # type: ignore[attr-defined]
    _compiled[statement] = compiled = _Compiled(
        str(compiler),
        compiler.positiontup or [],
        {name: value for name, value in compiler.params.items() if value is not None},
        dict(compiler._bind_processors),  # noqa: SLF001 (the only way to learn how values are sent)
    )
    return compiled
