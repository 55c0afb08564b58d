"""Postgres: the truth. Every transaction says whose rows it may touch.

`tenant(t)` opens a transaction that sees one tenant's rows; `fleet()` one that sees, across
tenants, only the tables without content (`work`, `tenant`, `tally`). Row-level security
enforces both through the setting `loci.tenant`, which lives as long as the transaction, so it
also holds behind a transaction-pooling proxy. Store functions filter by tenant besides
(`owned_by`): two locks, and the tests open each alone.

Every tenant transaction holds the generations' lock in shared mode. Creating or promoting an
index generation takes it exclusively: a save can't fall between two generations.
"""

import hashlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import orjson
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Function,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    any_,
    func,
    literal,
    or_,
    select,
    text,
    tuple_,
)
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from shared.foundation import config, errors
from shared.foundation.scope import Scope

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

ALL_TENANTS = "*"
GENERATIONS_LOCK = 0x10C1_0001
# What says "not now" rather than "not so": the server is away, starting, full, or gave up on us.
_PASSING = (
    OSError,
    PoolTimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
)


# Written out once: it opens every transaction, and composing it anew took longer than running it.
_OPENING = text(
    f"SELECT set_config('loci.tenant', :tenant, true), pg_advisory_xact_lock_shared({GENERATIONS_LOCK})"
)


def tenant_filter(table: Table, tenant: str) -> ColumnElement[bool]:
    """Return the application's own tenant filter: the one place that builds it."""
    return table.c.tenant == tenant


def is_any_of(column: ColumnElement[str], values: Iterable[str]) -> ColumnElement[bool]:
    """Return the condition that a text is among these.

    Unlike `IN` it has the same words for every count, so the statement is parsed and planned once.
    """
    return column == any_(literal(list(values), ARRAY(Text)))


def is_any_turn_of(
    session: ColumnElement[str], seq: ColumnElement[int], places: Iterable[tuple[str, int]]
) -> ColumnElement[bool]:
    """Return the condition that (session, seq) is one of these places; the same words for every count."""
    wanted = list(places)
    sessions = func.unnest(literal([place[0] for place in wanted], ARRAY(Text)))
    seqs = func.unnest(literal([place[1] for place in wanted], ARRAY(Integer)))
    return tuple_(session, seq).in_(select(sessions, seqs))


def exact_scope(table: Table, scope: Scope) -> ColumnElement[bool]:
    """Return the condition that a row belongs to exactly this scope: one user's, or to no user."""
    same_user = table.c.user_id.is_not_distinct_from(scope.user_id)
    return and_(tenant_filter(table, scope.tenant), table.c.agent_id == scope.agent_id, same_user)


def visible_scope(table: Table, scope: Scope) -> ColumnElement[bool]:
    """Return the condition of what a scope sees: the agent's common rows, and those of its user."""
    common = table.c.user_id.is_(None)
    visible = common if scope.user_id is None else or_(common, table.c.user_id == scope.user_id)
    return and_(tenant_filter(table, scope.tenant), table.c.agent_id == scope.agent_id, visible)


def keyset_after(*keys: tuple[ColumnElement[Any], Any, bool]) -> ColumnElement[bool]:
    """Return the condition of the rows that follow a position in an ordering.

    Each key is (column, value at the position, whether the column is ordered descending).
    """
    (column, value, is_descending), *rest = keys
    beyond = column < value if is_descending else column > value
    return or_(beyond, and_(column == value, keyset_after(*rest))) if rest else beyond


def seconds(number: float) -> Function[Any]:
    """Return an interval of this many seconds."""
    return func.make_interval(0, 0, 0, 0, 0, 0, number)


def advisory_lock_key(*names: str) -> int:
    """Return the key of the advisory lock that these names share, as a signed 64-bit integer."""
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class Postgres:
    """A pool of connections that act as the application's role."""

    def __init__(self, settings: config.Settings) -> None:
        url = config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")
        self.engine = create_engine(url, settings.postgres_role, settings.postgres_pool_size)
        self._unbound = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def for_tenant(self, tenant: str) -> AsyncIterator[AsyncConnection]:
        """Open one transaction over one tenant's rows; it commits when the block ends well.

        Raises errors.Unavailable when Postgres can't serve. A failure while committing is
        reported so too: its outcome is unknown, and a retry with the same key finds out.
        """
        with failures_as_unavailable():
            async with self.engine.begin() as connection:
                await connection.execute(_OPENING, {"tenant": tenant})
                yield connection

    @asynccontextmanager
    async def across_tenants(self, *, exclusive: bool = False) -> AsyncIterator[AsyncConnection]:
        """Open one transaction over the content-free tables of all tenants.

        `exclusive` waits until no tenant transaction is open and holds new ones back.
        """
        opening = select(func.set_config("loci.tenant", ALL_TENANTS, True))
        if exclusive:
            opening = opening.add_columns(func.pg_advisory_xact_lock(GENERATIONS_LOCK))
        with failures_as_unavailable():
            async with self.engine.begin() as connection:
                await connection.execute(opening)
                yield connection

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection without a transaction: one round trip a statement, and no rows to be seen.

        For what is asked before the tenant is known; row-level security hides every row from it.
        """
        with failures_as_unavailable():
            async with self._unbound.connect() as connection:
                yield connection

    async def ping(self) -> None:
        """Raise errors.Unavailable unless a query answers."""
        async with self.autocommit() as connection:
            await connection.execute(select(1))

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()


def create_engine(url: str, role: str, pool_size: int) -> AsyncEngine:
    """Create an engine whose sessions act as `role` ('' keeps the login's own)."""
    server_settings = {"application_name": "loci", "timezone": "UTC"} | ({"role": role} if role else {})
    return create_async_engine(
        async_url(url),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_timeout=5,
        # An error's text must not quote the memory that was being written.
        hide_parameters=True,
        json_serializer=_json,
        json_deserializer=orjson.loads,
        connect_args={"server_settings": server_settings, "timeout": 5, "command_timeout": 60},
    )


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def async_url(url: str) -> str:
    """Name the driver in a plain `postgresql://` address."""
    return "postgresql+asyncpg://" + url.partition("://")[2]


class failures_as_unavailable:  # noqa: N801  (reads as a statement: `with translated():`)
    """Turn what passes by itself into errors.Unavailable; let everything else through."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and _passes(error):
            raise errors.Unavailable("postgres", type(_origin(error)).__name__) from error


def _passes(error: BaseException) -> bool:
    if isinstance(error, errors.LociError):
        return False
    if isinstance(error, DBAPIError) and (error.connection_invalidated or isinstance(error, InterfaceError)):
        return True
    return isinstance(error, (*_PASSING, OperationalError)) or isinstance(_origin(error), _PASSING)


def _origin(error: BaseException) -> BaseException:
    """Return the driver's own error beneath SQLAlchemy's wrappers."""
    inner = getattr(error, "orig", None)
    return inner.__cause__ or inner if inner is not None else error
