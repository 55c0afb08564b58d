"""Every statement on signals. Functions take the caller's transaction and never commit."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.feedback.feedback_signal import Signal, SignalDraft
from shared.conversation.feedback.table import signal
from shared.conversation.sessions.session import Session
from shared.conversation.sessions.table import session
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres import owned_by


async def add(connection: AsyncConnection, session: Session, drafts: Sequence[SignalDraft]) -> list[Signal]:
    """Insert signals of a session and return them."""
    return await _add(connection, session.tenant, session.id, session.agent_id, session.user_id, drafts)


async def add_by_id(connection: AsyncConnection, tenant: str, session_id: str, draft: SignalDraft) -> None:
    """Insert a signal of a session that was named by its id, if it is still there."""
    statement = select(session.c.agent_id, session.c.user_id).where(
        owned_by(session, tenant), session.c.id == session_id
    )
    row = (await connection.execute(statement)).one_or_none()
    if row is not None:
        await _add(connection, tenant, session_id, row.agent_id, row.user_id, [draft])


async def _add(
    connection: AsyncConnection,
    tenant: str,
    session_id: str,
    agent_id: str,
    user_id: str | None,
    drafts: Sequence[SignalDraft],
) -> list[Signal]:
    """Insert signals and return them; those whose id is taken are drawn again."""
    owner = {"tenant": tenant, "session_id": session_id, "agent_id": agent_id, "user_id": user_id}
    added: list[Signal] = []
    waiting = list(drafts)
    while waiting:
        rows = {secrets.token_hex(6): draft for draft in waiting}
        stored = await _insert(connection, owner, rows)
        added += stored
        taken = rows.keys() - {one.id for one in stored}
        waiting = [rows[signal_id] for signal_id in taken]
    return added


async def _insert(
    connection: AsyncConnection, owner: Mapping[str, str | None], rows: Mapping[str, SignalDraft]
) -> list[Signal]:
    values = [{**owner, "id": signal_id, **draft.model_dump()} for signal_id, draft in rows.items()]
    statement = insert(signal).values(values).on_conflict_do_nothing().returning(signal)
    return [Signal.of(row) for row in (await connection.execute(statement)).mappings()]


async def newest(connection: AsyncConnection, scope: Scope, days: float, limit: int) -> list[Signal]:
    """Return the newest signals of the last `days` of exactly this scope, the newest first."""
    conditions = (
        owned_by(signal, scope.tenant),
        signal.c.agent_id == scope.agent_id,
        signal.c.user_id.is_not_distinct_from(scope.user_id),
        _within(days),
    )
    return await _ordered(connection, conditions, limit)


def _within(days: float) -> ColumnElement[bool]:
    return signal.c.created_at >= func.now() - timedelta(days=days)


async def page(
    connection: AsyncConnection,
    caller: Caller,
    wanted: Mapping[str, str],
    days: float,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[Signal]:
    """Return signals of the last `days` that the caller may see, the newest first.

    `wanted` holds columns and their values; `after` is the place of the last one seen.
    """
    conditions = [owned_by(signal, caller.tenant), _within(days)]
    bound = {"agent_id": caller.agent_id, "user_id": caller.user_id}
    for name, value in {**wanted, **{k: v for k, v in bound.items() if v is not None}}.items():
        conditions.append(signal.c[name] == value)
    if after is not None:
        moment, signal_id = after
        same = and_(signal.c.created_at == moment, signal.c.id > signal_id)
        conditions.append(or_(signal.c.created_at < moment, same))
    return await _ordered(connection, conditions, limit)


async def _ordered(
    connection: AsyncConnection, conditions: Sequence[ColumnElement[bool]], limit: int
) -> list[Signal]:
    statement = select(signal).where(*conditions).order_by(signal.c.created_at.desc(), signal.c.id)
    return [Signal.of(row) for row in (await connection.execute(statement.limit(limit))).mappings()]


async def count(connection: AsyncConnection, tenant: str, session_ids: Sequence[str]) -> int:
    """Return how many signals these sessions have."""
    mine = (owned_by(signal, tenant), signal.c.session_id.in_(session_ids))
    return int(await connection.scalar(select(func.count()).select_from(signal).where(*mine)) or 0)


async def expire(connection: AsyncConnection, tenant: str, age: timedelta) -> int:
    """Delete signals older than `age`; return how many."""
    old = signal.c.created_at < func.now() - age
    return (await connection.execute(delete(signal).where(owned_by(signal, tenant), old))).rowcount
