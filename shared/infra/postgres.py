"""Connect to Postgres, the source of truth. Every transaction names the tenant whose rows it may use.

`for_tenant(t)` opens a transaction that sees the rows of one tenant. `across_tenants()` opens one that
sees all tenants, but only in tables without content, such as `job` and `tenant`. Row-level security
enforces both through the setting `loci.tenant`. The setting ends with the transaction, so this also
works behind a proxy that pools transactions. Queries filter by tenant as well (`tenant_filter`). Each of
the two protections is sufficient, and the tests check each without the other.

Every tenant transaction holds the advisory lock of the index generations in shared mode. Creating or
promoting a generation takes it exclusively, so that no save misses one of two generations.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import asyncpg
import orjson
from sqlalchemy import (
    ARRAY,
    BindParameter,
    ColumnElement,
    FromClause,
    Function,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    any_,
    event,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
    tuple_,
)
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import PoolProxiedConnection

from shared.foundation import config
from shared.foundation.scope import Scope
from shared.infra.connection_pool import ConnectionPool
from shared.infra.postgres_failures import TRANSIENT
from shared.infra.prepared import driver_of
from shared.infra.transaction import Connection, FleetTransaction, Transaction

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
# The operator class of indexes whose ids are read in the order of their characters, by `~>~` and from a
# prefix on, whatever the collation of the database. Such an index serves `=` too.
BY_CHARACTERS = {"user_id": "text_pattern_ops"}
GENERATIONS_LOCK = 0x10C1_0001
# The version of what is written now: in microseconds, so that none is used again under the same name.
NEXT_VERSION = text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")

_POOL_GROWTH = 2
"""Under load the pool has so many times its usual connections."""
_POOL_TIMEOUT_SECONDS = 5.0
_CONNECT_SECONDS = 5.0
_SHORT_SECONDS = 10.0
"""A server that has not begun a transaction by then, or answered a short question, is out of reach."""
# A process that is frozen within a transaction would hold its locks for ever.
_END_IF_IDLE = "set_config('idle_in_transaction_session_timeout', '60s', true)"


def tenant_filter(table: FromClause, tenant: str) -> ColumnElement[bool]:
    """Return the condition that a row belongs to a tenant. All queries use this function."""
    return table.c.tenant == tenant


def is_any_of(column: ColumnElement[str], values: Iterable[str]) -> ColumnElement[bool]:
    """Return the condition that a text column has one of these values.

    Unlike with `IN`, the statement is the same for any number of values, so it is prepared only once.
    """
    return column == any_(literal(list(values), ARRAY(Text)))


def is_any_turn_of(
    session: ColumnElement[str], seq: ColumnElement[int], turn_keys: Iterable[tuple[str, int]]
) -> ColumnElement[bool]:
    """Return the condition that (session, seq) is one of these turn keys, as `is_any_of` does for texts."""
    turn_keys = list(turn_keys)
    session_ids = func.unnest(literal([session_id for session_id, _ in turn_keys], ARRAY(Text)))
    seqs = func.unnest(literal([seq for _, seq in turn_keys], ARRAY(Integer)))
    return tuple_(session, seq).in_(select(session_ids, seqs))


def is_in_turn_ranges(
    session: ColumnElement[str],
    first_seq: ColumnElement[int],
    last_seq: ColumnElement[int],
    ranges: Iterable[tuple[str, int, int]],
) -> ColumnElement[bool]:
    """Return the condition that turns from `first_seq` to `last_seq` of a session are in one of the ranges.

    One turn in common is enough. A range is (session id, first seq, last seq).
    """
    ranges = list(ranges)
    session_ids, firsts, lasts = (list(values) for values in zip(*ranges, strict=True))
    texts, numbers = ARRAY(Text), ARRAY(Integer)
    columns = (literal(session_ids, texts), literal(firsts, numbers), literal(lasts, numbers))
    r = func.unnest(*columns).table_valued("session_id", "first_seq", "last_seq").render_derived()
    is_same_session = r.c.session_id == session
    overlaps = (first_seq <= r.c.last_seq, last_seq >= r.c.first_seq)
    # The first condition can use an index.
    return and_(
        is_any_of(session, set(session_ids)), exists(select(r.c.session_id).where(is_same_session, *overlaps))
    )


def exact_scope(table: Table, scope: Scope) -> ColumnElement[bool]:
    """Return the condition that a row belongs to exactly this scope: to its user, or to no user."""
    same_user = table.c.user_id.is_not_distinct_from(scope.user_id)
    return and_(tenant_filter(table, scope.tenant), table.c.agent_id == scope.agent_id, same_user)


def visible_scope(table: FromClause, scope: Scope) -> ColumnElement[bool]:
    """Return the condition that a scope sees a row: it is common to the agent, or belongs to the user."""
    common = table.c.user_id.is_(None)
    visible = common if scope.user_id is None else or_(common, table.c.user_id == scope.user_id)
    return and_(tenant_filter(table, scope.tenant), table.c.agent_id == scope.agent_id, visible)


def keyset_after(*keys: tuple[ColumnElement[Any], Any, bool]) -> ColumnElement[bool]:
    """Return the condition of the rows that follow a position in an ordering.

    Each key is (column, value at the position, whether the column is in descending order).
    """
    (column, value, is_descending), *rest = keys
    follows = column < value if is_descending else column > value
    return or_(follows, and_(column == value, keyset_after(*rest))) if rest else follows


def seconds(number: float | BindParameter[float]) -> Function[Any]:
    """Return an SQL interval of this many seconds."""
    return func.make_interval(*[literal_column("0")] * 6, number)


async def transaction_time(tx: Transaction) -> datetime:
    """Return when the transaction began, as `now()` in its statements does: the time that its rows get."""
    return (await tx.execute(select(func.now()))).scalar_one()


def advisory_lock_key(*names: str) -> int:
    """Return the key of the advisory lock that these names share, as a signed 64-bit integer."""
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class Postgres:
    """A pool of connections that act as the application's role."""

    def __init__(self, settings: config.Settings) -> None:
        url = config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")
        size = settings.postgres_pool_size
        # Set whenever a connection is taken from the pool, the isolation level would cost as much as a query.
        self.engine = create_engine(url, settings.postgres_role, size, isolation_level="AUTOCOMMIT")
        most = _POOL_GROWTH * size
        self._pool = ConnectionPool(self.engine, kept=size, most=most, timeout=_POOL_TIMEOUT_SECONDS)

    @asynccontextmanager
    async def for_tenant(self, tenant: str) -> AsyncIterator[Transaction]:
        """Open a transaction over the rows of one tenant; it commits if the block ends without an error.

        Raises errors.Unavailable if Postgres cannot serve, also for a failure during the commit, after
        which the outcome is unknown. A caller that repeats the request with its idempotency key is safe.
        """
        lock = f"pg_advisory_xact_lock_shared({GENERATIONS_LOCK})"
        async with self._transaction(tenant, lock) as connection:
            yield Transaction(connection, tenant)

    @asynccontextmanager
    async def across_tenants(self, *, exclusive: bool = False) -> AsyncIterator[FleetTransaction]:
        """Open a transaction over the tables without content, for all tenants.

        `exclusive` waits until no tenant transaction is open, and blocks new ones until this one ends.
        """
        lock = f"pg_advisory_xact_lock({GENERATIONS_LOCK})" if exclusive else None
        async with self._transaction(ALL_TENANTS, lock, waits_for_others=exclusive) as connection:
            yield FleetTransaction(connection)

    @asynccontextmanager
    async def _transaction(
        self, tenant: str, lock: str | None, *, waits_for_others: bool = False
    ) -> AsyncIterator[AsyncConnection]:
        """Begin and name the tenant in one round trip, with the driver; end with the block.

        The connection is in SQLAlchemy's autocommit mode, so that nobody else begins or ends a transaction.
        """
        names_tenant = f"set_config('loci.tenant', {_quoted(tenant)}, true)"
        expressions = ", ".join([names_tenant, _END_IF_IDLE, *([lock] if lock else [])])
        async with self._pool.lend() as connection:
            driver = driver_of(connection)
            try:
                limit = None if waits_for_others else _SHORT_SECONDS  # None: that of every statement
                await driver.execute(f"BEGIN; SELECT {expressions}", timeout=limit)
                yield connection
                ended = await driver.execute("COMMIT")
            except BaseException as error:
                await _roll_back(connection, error)
                raise
            if ended != "COMMIT":
                raise RuntimeError("a statement failed, and the block went on: nothing was committed")

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Connection]:
        """Open a connection for ten seconds, on which each statement commits by itself in one round trip.

        It is for questions that come before the tenant is known. Row-level security hides every row.
        """
        async with self._pool.lend() as connection:
            try:
                async with asyncio.timeout(_SHORT_SECONDS):
                    yield Connection(connection)
            except (TimeoutError, asyncio.CancelledError):
                await connection.invalidate()  # perhaps in the middle of a statement
                raise

    async def ping(self) -> None:
        """Raise errors.Unavailable unless Postgres answers a query."""
        async with self.autocommit() as connection:
            await connection.execute(select(1))

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()


async def _roll_back(connection: AsyncConnection, error: BaseException) -> None:
    """Roll back, or drop a connection in a state that nobody knows."""
    if connection.invalidated:  # SQLAlchemy has dropped it, because a statement found it broken
        return
    if isinstance(error, TimeoutError) or not isinstance(error, Exception):  # perhaps in a statement
        await connection.invalidate()
        return
    try:
        await driver_of(connection).execute("ROLLBACK")
    except TRANSIENT:
        await connection.invalidate()


def _quoted(text_value: str) -> str:
    return "'" + text_value.replace("'", "''") + "'"


def create_engine(url: str, role: str, pool_size: int, **options: Any) -> AsyncEngine:
    """Create an engine whose sessions act as `role`; with '', they act as the login role.

    `options` are those of SQLAlchemy's engine.
    """
    server_settings = {"application_name": "loci", "timezone": "UTC"} | ({"role": role} if role else {})
    engine = create_async_engine(
        async_url(url),
        pool_size=pool_size,
        max_overflow=(_POOL_GROWTH - 1) * pool_size,
        pool_timeout=_POOL_TIMEOUT_SECONDS,
        # Otherwise the text of an error would quote the memory that was being written.
        hide_parameters=True,
        json_serializer=_to_json,
        json_deserializer=orjson.loads,
        connect_args={"server_settings": server_settings, "timeout": _CONNECT_SECONDS, "command_timeout": 60},
        **options,
    )
    event.listen(engine.sync_engine, "checkout", _replace_if_closed)
    return engine


def _replace_if_closed(connection: PoolProxiedConnection, *_: object) -> None:
    """Make the pool open another connection in place of one that the server has closed meanwhile."""
    driver: asyncpg.Connection = connection.driver_connection
    if driver.is_closed():
        raise DisconnectionError


def _to_json(value: object) -> str:
    return orjson.dumps(value).decode()


def async_url(url: str) -> str:
    """Return a `postgresql://` address with the name of the async driver."""
    return "postgresql+asyncpg://" + url.partition("://")[2]
