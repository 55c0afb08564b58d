"""Every statement on sessions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Table,
    and_,
    delete,
    exists,
    func,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions.session import Session
from shared.conversation.sessions.table import session
from shared.foundation.scope import Caller
from shared.infra.postgres import tenant_filter
from shared.platform.spend import money
from shared.platform.spend.charge import Charge


def _columns(idle_after: float) -> list[ColumnElement[Any]]:
    pause = func.now() - session.c.last_turn_at
    idle = func.coalesce(pause > func.make_interval(0, 0, 0, 0, 0, 0, idle_after), False)
    return [*session.c, idle.label("window_expired")]


def _alive() -> ColumnElement[bool]:
    return or_(session.c.expires_at.is_(None), session.c.expires_at > func.now())


def session_is_live(holder: Table) -> ColumnElement[bool]:
    """Return the condition that a row's session is not over: the sweep takes its rows away only later."""
    own = (session.c.tenant == holder.c.tenant, session.c.id == holder.c.session_id)
    return ~exists().where(*own, session.c.expires_at <= func.now())


async def insert_rows(connection: AsyncConnection, values: dict[str, Any]) -> bool:
    """Insert a session unless its id is taken; tell whether it was new."""
    statement = insert(session).values(values).on_conflict_do_nothing().returning(session.c.id)
    return (await connection.scalar(statement)) is not None


async def get(
    connection: AsyncConnection, caller: Caller, session_id: str, idle_after: float, *, lock: bool = False
) -> Session | None:
    """Return a live session that the caller may see; `lock` holds it for the transaction."""
    mine = (tenant_filter(session, caller.tenant), session.c.id == session_id, _alive())
    statement = select(*_columns(idle_after)).where(*mine)
    if lock:
        statement = statement.with_for_update(of=session)
    row = (await connection.execute(statement)).mappings().one_or_none()
    if row is None or not _open_to(caller, row["agent_id"], row["user_id"]):
        return None
    return Session.from_row(row)


def _open_to(caller: Caller, agent_id: str, user_id: str | None) -> bool:
    if caller.agent_id is not None and agent_id != caller.agent_id:
        return False
    return caller.user_id is None or user_id == caller.user_id


async def is_expired(connection: AsyncConnection, tenant: str, session_id: str) -> bool:
    """Tell whether the time of a session that is still there is over."""
    mine = (tenant_filter(session, tenant), session.c.id == session_id, not_(_alive()))
    return await connection.scalar(select(session.c.id).where(*mine)) is not None


async def page(
    connection: AsyncConnection,
    caller: Caller,
    idle_after: float,
    limit: int,
    after: tuple[datetime, str] | None,
    wanted: dict[str, str],
) -> list[Session]:
    """Return sessions that the caller may see, the newest first."""
    conditions = [tenant_filter(session, caller.tenant), _alive()]
    bound = {"agent_id": caller.agent_id, "user_id": caller.user_id}
    for name, value in {**wanted, **{k: v for k, v in bound.items() if v is not None}}.items():
        conditions.append(session.c[name] == value)
    if after is not None:
        moment, session_id = after
        same = and_(session.c.created_at == moment, session.c.id > session_id)
        conditions.append(or_(session.c.created_at < moment, same))
    statement = select(*_columns(idle_after)).where(*conditions)
    ordered = statement.order_by(session.c.created_at.desc(), session.c.id).limit(limit)
    return [Session.from_row(row) for row in (await connection.execute(ordered)).mappings()]


async def reserve_seqs(connection: AsyncConnection, opened: Session, count: int) -> int:
    """Reserve `count` sequence numbers of a locked session; return the first. Moves its expiry on."""
    statement = (
        update(session)
        .where(tenant_filter(session, opened.tenant), session.c.id == opened.id)
        .values(last_seq=session.c.last_seq + count, last_turn_at=func.now(), expires_at=_later(opened))
        .returning(session.c.last_seq)
    )
    return int(await connection.scalar(statement) or 0) - count + 1


def _later(opened: Session) -> ColumnElement[datetime] | None:
    """Return when a session that is used now will be over."""
    ttl = opened.ttl_seconds
    return None if ttl is None else func.now() + func.make_interval(0, 0, 0, 0, 0, 0, ttl)


async def renew_expiry(connection: AsyncConnection, opened: Session) -> None:
    """Let a session's time begin anew, where it has one."""
    if opened.ttl_seconds is not None:
        mine = (tenant_filter(session, opened.tenant), session.c.id == opened.id)
        await connection.execute(update(session).where(*mine).values(expires_at=_later(opened)))


async def owners_of(
    connection: AsyncConnection, tenant: str, namespaces: Sequence[str]
) -> dict[str, list[tuple[str, str | None]]]:
    """Return, for each desk that sessions opened, their (agent, user) pairs."""
    folded = func.lower(session.c.namespace)
    statement = select(folded.label("namespace"), session.c.agent_id, session.c.user_id).where(
        tenant_filter(session, tenant), folded.in_([name.lower() for name in namespaces])
    )
    owners: dict[str, list[tuple[str, str | None]]] = {}
    for row in await connection.execute(statement.distinct()):
        owners.setdefault(row.namespace, []).append((row.agent_id, row.user_id))
    return owners


async def lock(connection: AsyncConnection, tenant: str, session_ids: Sequence[str]) -> None:
    """Lock sessions, in one order: from then on nobody adds to what they hold."""
    mine = (tenant_filter(session, tenant), session.c.id.in_(session_ids))
    await connection.execute(select(session.c.id).where(*mine).order_by(session.c.id).with_for_update())


async def remove(connection: AsyncConnection, tenant: str, session_ids: Sequence[str]) -> int:
    """Delete sessions with their turns and marks; return how many there were."""
    mine = (tenant_filter(session, tenant), session.c.id.in_(session_ids))
    return (await connection.execute(delete(session).where(*mine))).rowcount


async def expired(connection: AsyncConnection, tenant: str, limit: int) -> list[tuple[str, str]]:
    """Return (id, namespace) of sessions whose time is over, and hold them: two sweeps share the work."""
    over = session.c.expires_at <= func.now()
    statement = (
        select(session.c.id, session.c.namespace).where(tenant_filter(session, tenant), over).limit(limit)
    )
    statement = statement.with_for_update(skip_locked=True)
    return [(row.id, row.namespace) for row in await connection.execute(statement)]


async def of_user(connection: AsyncConnection, tenant: str, user_id: str) -> list[tuple[str, str]]:
    """Return (id, namespace) of every session of a user, of whatever agent."""
    mine = (tenant_filter(session, tenant), session.c.user_id == user_id)
    statement = select(session.c.id, session.c.namespace).where(*mine)
    return [(row.id, row.namespace) for row in await connection.execute(statement)]


async def add_to_session(
    connection: AsyncConnection, tenant: str, session_id: str, charges: Sequence[Charge]
) -> None:
    """Add charges to the totals of their session, whose lock is held."""
    known = [one.cost_usd for one in charges if one.cost_usd is not None]
    before = func.coalesce(session.c.total_cost_usd, 0)
    added = {
        "total_input_tokens": session.c.total_input_tokens + sum(one.input_tokens for one in charges),
        "total_output_tokens": session.c.total_output_tokens + sum(one.output_tokens for one in charges),
        "total_cached_tokens": session.c.total_cached_tokens + sum(one.cached_tokens for one in charges),
        "total_cost_usd": before + money.total(known) if known else session.c.total_cost_usd,
        "unpriced_charges": session.c.unpriced_charges + len(charges) - len(known),
        "spend_updated_at": func.now() if charges else session.c.spend_updated_at,
    }
    mine = (tenant_filter(session, tenant), session.c.id == session_id)
    await connection.execute(update(session).where(*mine).values(added))
