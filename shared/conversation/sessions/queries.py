"""Every statement on sessions. Functions take the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Double,
    FromClause,
    RowMapping,
    bindparam,
    exists,
    func,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from shared.conversation.sessions.filters import SessionFilters
from shared.conversation.sessions.session import Session
from shared.conversation.sessions.table import session as session_table
from shared.foundation.names import fold
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres import exact_scope, is_any_of, keyset_after, seconds, tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner


def _columns(idle_after: float | BindParameter[float]) -> list[ColumnElement[Any]]:
    idle_time = func.now() - session_table.c.last_turn_at
    window_expired = func.coalesce(idle_time > seconds(idle_after), False)
    return [*session_table.c, window_expired.label("window_expired"), not_(_is_live()).label("is_expired")]


def _is_live() -> ColumnElement[bool]:
    return or_(session_table.c.expires_at.is_(None), session_table.c.expires_at > func.now())


def session_is_live(table: FromClause) -> ColumnElement[bool]:
    """Return the condition that the session of a row of `table` has not expired.

    Without the condition, rows of an expired session would be visible until the sweep deletes them.
    """
    is_session_of_row = (session_table.c.tenant == table.c.tenant, session_table.c.id == table.c.session_id)
    return ~exists().where(*is_session_of_row, session_table.c.expires_at <= func.now())


async def insert_session(tx: Transaction, values: dict[str, Any]) -> bool:
    """Insert a session unless its id exists in some spelling; return whether it was inserted."""
    columns = values | {"folded_id": fold(values["id"])}
    statement = insert(session_table).values(columns).on_conflict_do_nothing().returning(session_table.c.id)
    return (await tx.scalar(statement)) is not None


_IS_NAMED = (session_table.c.tenant == bindparam("tenant"), session_table.c.id == bindparam("id"))
_GET = select(*_columns(bindparam("idle_after", type_=Double))).where(*_IS_NAMED, _is_live())
_LOCK = _GET.with_for_update()
_SET_WINDOW_START = update(session_table).where(*_IS_NAMED).values(window_start=bindparam("start"))
# Without a time to live, the sum is NULL: such a session does not expire.
_RENEW_EXPIRY = (
    update(session_table)
    .where(*_IS_NAMED)
    .values(expires_at=func.now() + seconds(bindparam("ttl", type_=Double)))
)
_RESERVE = _RENEW_EXPIRY.values(
    last_seq=session_table.c.last_seq + bindparam("count"),
    turn_count=session_table.c.turn_count + bindparam("count"),
    last_turn_at=func.now(),
).returning(session_table.c.last_seq)


async def get(
    tx: Transaction, caller: Caller, session_id: str, idle_after: float, *, lock: bool = False
) -> Session | None:
    """Return a session that has not expired and that the caller may see, or None.

    `lock` locks its row until the transaction ends.
    """
    values = {"tenant": caller.tenant, "id": session_id, "idle_after": idle_after}
    row = await tx.fetch_one(_LOCK if lock else _GET, values)
    return _visible(caller, row)


async def lock_by_id(tx: Transaction, session_id: str, idle_after: float) -> Session | None:
    """Return a session that has not expired, locked until the transaction ends, or None. For workers."""
    values = {"tenant": tx.tenant, "id": session_id, "idle_after": idle_after}
    row = await tx.fetch_one(_LOCK, values)
    return None if row is None else Session.from_row(row)


async def get_in_any_spelling(
    tx: Transaction, caller: Caller, session_id: str, idle_after: float
) -> Session | None:
    """Return a session by its id without regard to case, expired or not, or None as `get` does."""
    same_id = (tenant_filter(session_table, caller.tenant), session_table.c.folded_id == fold(session_id))
    rows = await tx.execute(select(*_columns(idle_after)).where(*same_id))
    return _visible(caller, rows.mappings().one_or_none())


def _visible(caller: Caller, row: RowMapping | None) -> Session | None:
    if row is None or not rights.allows(
        caller, Area.SESSIONS, Action.READ, Owner(row["agent_id"], row["user_id"])
    ):
        return None
    return Session.from_row(row)


async def list_page(
    tx: Transaction,
    caller: Caller,
    idle_after: float,
    limit: int,
    after: tuple[datetime, str] | None,
    filters: SessionFilters,
) -> list[Session]:
    """Return sessions that the caller may see, newest first.

    `after` is the (created_at, id) of the last session of the previous page.
    """
    conditions = [tenant_filter(session_table, caller.tenant), _is_live(), *filters.to_sql()]
    conditions += [session_table.c[name] == value for name, value in caller.binding_filter.items()]
    if after is not None:
        created_at, session_id = after
        keys = ((session_table.c.created_at, created_at, True), (session_table.c.id, session_id, False))
        conditions.append(keyset_after(*keys))
    statement = select(*_columns(idle_after)).where(*conditions)
    ordered = statement.order_by(session_table.c.created_at.desc(), session_table.c.id).limit(limit)
    return [Session.from_row(row) for row in (await tx.execute(ordered)).mappings()]


async def reserve_seqs(tx: Transaction, session: Session, count: int) -> int:
    """Reserve `count` sequence numbers of a locked session, renew its expiry and return the first number."""
    values = {"tenant": session.tenant, "id": session.id, "count": count, "ttl": session.ttl_seconds}
    [row] = await tx.fetch(_RESERVE, values)
    return int(row["last_seq"]) - count + 1


async def note_log_change(
    tx: Transaction, session_id: str, *, more_turns: int = 0, last_seq: int = 0
) -> None:
    """Note that turns of a locked session were edited, deleted, or added in between: caches are out of date.

    `more_turns` is negative for deleted ones. `last_seq` is the highest number of those that were added.
    """
    columns = session_table.c
    values = {
        "turn_count": columns.turn_count + more_turns,
        "last_seq": func.greatest(columns.last_seq, last_seq),
        "log_revision": columns.log_revision + 1,
    }
    where = (tenant_filter(session_table, tx.tenant), columns.id == session_id)
    await tx.execute(update(session_table).where(*where).values(values))


def _expiry(ttl_seconds: int | None) -> ColumnElement[datetime] | None:
    """Return when a session that is used now will expire, or None."""
    return None if ttl_seconds is None else func.now() + seconds(ttl_seconds)


async def set_window_start(tx: Transaction, session: Session, start: int) -> None:
    """Set from which sequence number on contexts of a locked session replay turns."""
    names = {"tenant": session.tenant, "id": session.id}
    await tx.fetch(_SET_WINDOW_START, names | {"start": start})


async def renew_expiry(tx: Transaction, session: Session) -> None:
    """Restart the time to live of a session, if it has one."""
    if session.ttl_seconds is not None:
        values = {"tenant": session.tenant, "id": session.id, "ttl": session.ttl_seconds}
        await tx.fetch(_RENEW_EXPIRY, values)


async def update_fields(tx: Transaction, session: Session, values: Mapping[str, Any]) -> None:
    """Change columns of a locked session and restart its time to live."""
    expires_at = _expiry(values.get("ttl_seconds", session.ttl_seconds))
    where = (tenant_filter(session_table, session.tenant), session_table.c.id == session.id)
    await tx.execute(update(session_table).where(*where).values(**values, expires_at=expires_at))


class LockedSession(NamedTuple):
    """What a deletion has to know about a session."""

    id: str
    kind: str
    namespace: str


_DELETION_COLUMNS = (session_table.c.id, session_table.c.kind, session_table.c.namespace)


async def lock(tx: Transaction, session_ids: Sequence[str]) -> list[LockedSession]:
    """Lock sessions and return those that exist, so that nobody else adds to their content.

    The fixed order prevents deadlocks.
    """
    where = (tenant_filter(session_table, tx.tenant), is_any_of(session_table.c.id, session_ids))
    statement = select(*_DELETION_COLUMNS).where(*where).order_by(session_table.c.id).with_for_update()
    return [LockedSession(*row) for row in await tx.execute(statement)]


async def read_users(tx: Transaction, session_ids: Sequence[str]) -> dict[str, str | None]:
    """Return whose these sessions are, by session id; None stands for nobody's."""
    columns = session_table.c
    where = (tenant_filter(session_table, tx.tenant), is_any_of(columns.id, session_ids))
    rows = await tx.execute(select(columns.id, columns.user_id).where(*where))
    return {row.id: row.user_id for row in rows}


async def lock_existing(tx: Transaction, session_ids: Sequence[str]) -> set[str]:
    """Return those of these ids that exist, and keep their sessions from being deleted until the end.

    Changing the sessions stays possible. A transaction that stores a copy of their text calls this.
    """
    if not session_ids:
        return set()
    where = (tenant_filter(session_table, tx.tenant), is_any_of(session_table.c.id, session_ids))
    statement = select(session_table.c.id).where(*where).order_by(session_table.c.id)
    return set(await tx.scalars(statement.with_for_update(read=True, key_share=True)))


async def lock_of(
    tx: Transaction, *, user_id: str | None = None, agent_id: str | None = None, limit: int | None = None
) -> list[LockedSession]:
    """Lock the sessions of a user, of all agents, or of an agent, of all users; at most `limit`."""
    owner = session_table.c.user_id == user_id if user_id else session_table.c.agent_id == agent_id
    statement = select(*_DELETION_COLUMNS).where(tenant_filter(session_table, tx.tenant), owner)
    ordered = statement.order_by(session_table.c.id).limit(limit).with_for_update()
    return [LockedSession(*row) for row in await tx.execute(ordered)]


async def lock_expired(tx: Transaction, limit: int) -> list[LockedSession]:
    """Lock expired sessions and return them.

    Sessions that another transaction has locked are skipped, so that two sweeps share the work.
    """
    where = (tenant_filter(session_table, tx.tenant), session_table.c.expires_at <= func.now())
    statement = select(*_DELETION_COLUMNS).where(*where).order_by(session_table.c.id).limit(limit)
    rows = await tx.execute(statement.with_for_update(skip_locked=True))
    return [LockedSession(*row) for row in rows]


async def list_idle(
    tx: Transaction,
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
        session_table.c.turn_count > 1,
    )
    where = (exact_scope(session_table, scope), *is_idle, *conditions)
    statement = select(session_table.c.id).where(*where).order_by(session_table.c.last_turn_at)
    return list((await tx.scalars(statement.limit(limit))).all())


async def seconds_since_turn(tx: Transaction, session: Session) -> float:
    """Return how many seconds ago the last turn of a session was received."""
    age = func.extract("epoch", func.now() - session_table.c.last_turn_at)
    where = (tenant_filter(session_table, session.tenant), session_table.c.id == session.id)
    return float(await tx.scalar(select(age).where(*where)) or 0)


async def seconds_until_idle(
    tx: Transaction, scope: Scope, idle_seconds: float, *conditions: ColumnElement[bool]
) -> float | None:
    """Return in how many seconds the first of exactly this scope's other sessions can be idle, or None.

    Only sessions that meet the conditions count, and that are not idle yet (`list_idle`).
    """
    idle_at = func.min(session_table.c.last_turn_at) + seconds(idle_seconds)
    is_active = (
        session_table.c.last_turn_at >= func.now() - seconds(idle_seconds),
        session_table.c.turn_count > 1,
    )
    where = (exact_scope(session_table, scope), *is_active, *conditions)
    remaining = await tx.scalar(select(func.extract("epoch", idle_at - func.now())).where(*where))
    return None if remaining is None else float(remaining)


async def seconds_since_last_turn(tx: Transaction, scope: Scope) -> float | None:
    """Return the seconds since exactly this scope's last turn, or None if it has none."""
    last_turn_at = func.max(session_table.c.last_turn_at)
    statement = select(func.extract("epoch", func.now() - last_turn_at)).where(
        exact_scope(session_table, scope)
    )
    elapsed = await tx.scalar(statement)
    return None if elapsed is None else float(elapsed)
