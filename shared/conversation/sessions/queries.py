"""Every statement on sessions. Functions take the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Table,
    exists,
    func,
    not_,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions.session import Session
from shared.conversation.sessions.table import session as session_table
from shared.foundation.names import fold
from shared.foundation.scope import Caller, Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope, is_any_of, keyset_after, seconds, tenant_filter
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.spend import money
from shared.platform.spend.charge import Charge


def _columns(idle_after: float) -> list[ColumnElement[Any]]:
    idle_time = func.now() - session_table.c.last_turn_at
    window_expired = func.coalesce(idle_time > seconds(idle_after), False)
    return [*session_table.c, window_expired.label("window_expired"), not_(_is_live()).label("is_expired")]


def _is_live() -> ColumnElement[bool]:
    return or_(session_table.c.expires_at.is_(None), session_table.c.expires_at > func.now())


def session_is_live(table: Table) -> ColumnElement[bool]:
    """Return the condition that the session of a row of `table` has not expired.

    Without the condition, rows of an expired session would be visible until the sweep deletes them.
    """
    is_session_of_row = (session_table.c.tenant == table.c.tenant, session_table.c.id == table.c.session_id)
    return ~exists().where(*is_session_of_row, session_table.c.expires_at <= func.now())


async def insert_session(connection: AsyncConnection, values: dict[str, Any]) -> bool:
    """Insert a session unless its id exists in some spelling; return whether it was inserted."""
    columns = values | {"folded_id": fold(values["id"])}
    statement = insert(session_table).values(columns).on_conflict_do_nothing().returning(session_table.c.id)
    return (await connection.scalar(statement)) is not None


_SELECT_LIVE = """
    SELECT s.*, false AS is_expired,
           coalesce(now() - s.last_turn_at > make_interval(secs => :idle_after), false) AS window_expired
    FROM session s
    WHERE s.tenant = :tenant AND s.id = :id AND (s.expires_at IS NULL OR s.expires_at > now())
    """
_GET = text(_SELECT_LIVE)
_LOCK = text(f"{_SELECT_LIVE} FOR UPDATE OF s")
_RESERVE = text(
    """
    UPDATE session SET last_seq = last_seq + :count, last_turn_at = now(),
                       expires_at = now() + make_interval(secs => CAST(:ttl AS double precision))
    WHERE tenant = :tenant AND id = :id
    RETURNING last_seq
    """
)


async def get(
    connection: AsyncConnection, caller: Caller, session_id: str, idle_after: float, *, lock: bool = False
) -> Session | None:
    """Return a session that has not expired and that the caller may see, or None.

    `lock` locks its row until the transaction ends.
    """
    values = {"tenant": caller.tenant, "id": session_id, "idle_after": idle_after}
    row = await prepared.fetch_one(connection, _LOCK if lock else _GET, values)
    return _visible(caller, row)


async def get_in_any_spelling(
    connection: AsyncConnection, caller: Caller, session_id: str, idle_after: float
) -> Session | None:
    """Return a session by its id without regard to case, expired or not, or None as `get` does."""
    same_id = (tenant_filter(session_table, caller.tenant), session_table.c.folded_id == fold(session_id))
    rows = await connection.execute(select(*_columns(idle_after)).where(*same_id))
    return _visible(caller, rows.mappings().one_or_none())


def _visible(caller: Caller, row: RowMapping | None) -> Session | None:
    if row is None or not rights.allows(
        caller, Area.SESSIONS, Action.READ, Owner(row["agent_id"], row["user_id"])
    ):
        return None
    return Session.from_row(row)


async def list_page(
    connection: AsyncConnection,
    caller: Caller,
    idle_after: float,
    limit: int,
    after: tuple[datetime, str] | None,
    filters: Mapping[str, str],
) -> list[Session]:
    """Return sessions that the caller may see, newest first.

    `after` is the (created_at, id) of the last session of the previous page. `filters` are column
    values.
    """
    conditions = [tenant_filter(session_table, caller.tenant), _is_live()]
    columns = {**filters, **caller.binding_filter}
    conditions += [session_table.c[name] == value for name, value in columns.items()]
    if after is not None:
        created_at, session_id = after
        keys = ((session_table.c.created_at, created_at, True), (session_table.c.id, session_id, False))
        conditions.append(keyset_after(*keys))
    statement = select(*_columns(idle_after)).where(*conditions)
    ordered = statement.order_by(session_table.c.created_at.desc(), session_table.c.id).limit(limit)
    return [Session.from_row(row) for row in (await connection.execute(ordered)).mappings()]


async def reserve_seqs(connection: AsyncConnection, session: Session, count: int) -> int:
    """Reserve `count` sequence numbers of a locked session, renew its expiry and return the first number."""
    values = {"tenant": session.tenant, "id": session.id, "count": count, "ttl": session.ttl_seconds}
    [row] = await prepared.fetch(connection, _RESERVE, values)
    return int(row["last_seq"]) - count + 1


def _renewed_expiry(session: Session) -> ColumnElement[datetime] | None:
    """Return when a session that is used now will expire, or None."""
    ttl = session.ttl_seconds
    return None if ttl is None else func.now() + seconds(ttl)


async def renew_expiry(connection: AsyncConnection, session: Session) -> None:
    """Restart the time to live of a session, if it has one."""
    if session.ttl_seconds is not None:
        where = (tenant_filter(session_table, session.tenant), session_table.c.id == session.id)
        await connection.execute(
            update(session_table).where(*where).values(expires_at=_renewed_expiry(session))
        )


class LockedSession(NamedTuple):
    """What a deletion has to know about a session."""

    id: str
    kind: str
    namespace: str


_DELETION_COLUMNS = (session_table.c.id, session_table.c.kind, session_table.c.namespace)


async def lock(connection: AsyncConnection, tenant: str, session_ids: Sequence[str]) -> list[LockedSession]:
    """Lock sessions and return those that exist, so that nobody else adds to their content.

    The fixed order prevents deadlocks.
    """
    where = (tenant_filter(session_table, tenant), is_any_of(session_table.c.id, session_ids))
    statement = select(*_DELETION_COLUMNS).where(*where).order_by(session_table.c.id).with_for_update()
    return [LockedSession(*row) for row in await connection.execute(statement)]


async def lock_existing(connection: AsyncConnection, tenant: str, session_ids: Sequence[str]) -> set[str]:
    """Return those of these ids that exist, and keep their sessions from being deleted until the end.

    Changing the sessions stays possible. A transaction that stores a copy of their text calls this.
    """
    if not session_ids:
        return set()
    where = (tenant_filter(session_table, tenant), is_any_of(session_table.c.id, session_ids))
    statement = select(session_table.c.id).where(*where).order_by(session_table.c.id)
    return set(await connection.scalars(statement.with_for_update(read=True, key_share=True)))


async def lock_of(
    connection: AsyncConnection,
    tenant: str,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    limit: int | None = None,
) -> list[LockedSession]:
    """Lock the sessions of a user, of all agents, or of an agent, of all users; at most `limit`."""
    owner = session_table.c.user_id == user_id if user_id else session_table.c.agent_id == agent_id
    statement = select(*_DELETION_COLUMNS).where(tenant_filter(session_table, tenant), owner)
    ordered = statement.order_by(session_table.c.id).limit(limit).with_for_update()
    return [LockedSession(*row) for row in await connection.execute(ordered)]


async def lock_expired(connection: AsyncConnection, tenant: str, limit: int) -> list[LockedSession]:
    """Lock expired sessions and return them.

    Sessions that another transaction has locked are skipped, so that two sweeps share the work.
    """
    where = (tenant_filter(session_table, tenant), session_table.c.expires_at <= func.now())
    statement = select(*_DELETION_COLUMNS).where(*where).order_by(session_table.c.id).limit(limit)
    rows = await connection.execute(statement.with_for_update(skip_locked=True))
    return [LockedSession(*row) for row in rows]


async def list_idle(
    connection: AsyncConnection,
    scope: Scope,
    idle_seconds: float,
    limit: int,
    *conditions: ColumnElement[bool],
) -> list[str]:
    """Return the ids of exactly this scope's sessions that are idle and meet the conditions, longest first.

    A session is idle if it has more than one turn, and none within the last `idle_seconds`.
    """
    is_idle = (
        session_table.c.last_turn_at < func.now() - seconds(idle_seconds),
        session_table.c.last_seq > 1,
    )
    where = (exact_scope(session_table, scope), *is_idle, *conditions)
    statement = select(session_table.c.id).where(*where).order_by(session_table.c.last_turn_at)
    return list((await connection.scalars(statement.limit(limit))).all())


async def seconds_until_idle(
    connection: AsyncConnection, scope: Scope, idle_seconds: float, *conditions: ColumnElement[bool]
) -> float | None:
    """Return in how many seconds the first of exactly this scope's other sessions can be idle, or None.

    Only sessions that meet the conditions count, and that are not idle yet (`list_idle`).
    """
    idle_at = func.min(session_table.c.last_turn_at) + seconds(idle_seconds)
    is_active = (
        session_table.c.last_turn_at >= func.now() - seconds(idle_seconds),
        session_table.c.last_seq > 1,
    )
    where = (exact_scope(session_table, scope), *is_active, *conditions)
    remaining = await connection.scalar(select(func.extract("epoch", idle_at - func.now())).where(*where))
    return None if remaining is None else float(remaining)


async def add_charges(
    connection: AsyncConnection, tenant: str, session_id: str, charges: Sequence[Charge]
) -> None:
    """Add charges to the totals of their session, whose row the transaction has locked."""
    costs = [charge.cost_usd for charge in charges if charge.cost_usd is not None]
    totals = session_table.c
    previous_cost = func.coalesce(totals.total_cost_usd, 0)
    columns = {
        "total_input_tokens": totals.total_input_tokens + sum(charge.input_tokens for charge in charges),
        "total_output_tokens": totals.total_output_tokens + sum(charge.output_tokens for charge in charges),
        "total_cached_tokens": totals.total_cached_tokens + sum(charge.cached_tokens for charge in charges),
        "total_cost_usd": previous_cost + money.total(costs) if costs else totals.total_cost_usd,
        "unpriced_charges": totals.unpriced_charges + len(charges) - len(costs),
        "spend_updated_at": func.now() if charges else totals.spend_updated_at,
    }
    where = (tenant_filter(session_table, tenant), session_table.c.id == session_id)
    await connection.execute(update(session_table).where(*where).values(columns))
