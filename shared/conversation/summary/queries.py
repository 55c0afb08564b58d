"""Every statement on summaries. Functions use the caller's transaction and never commit."""

from datetime import datetime, timedelta

from sqlalchemy import delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert

from shared.conversation.sessions.session import Session
from shared.conversation.summary.summary import SessionSummary
from shared.conversation.summary.table import session_summary
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.table import READ_COLUMNS, turn
from shared.conversation.turns.turn import Turn
from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction


async def find(tx: Transaction, session_id: str) -> SessionSummary | None:
    """Return the summary of a session, or None."""
    where = (tenant_filter(session_summary, tx.tenant), session_summary.c.session_id == session_id)
    row = (await tx.execute(select(session_summary).where(*where))).mappings().one_or_none()
    return None if row is None else SessionSummary.from_row(row)


async def find_times(tx: Transaction, session: Session) -> tuple[datetime | None, datetime]:
    """Return when the session was last read for its summary, or None without one, and the time now."""
    where = (tenant_filter(session_summary, session.tenant), session_summary.c.session_id == session.id)
    read_at = select(session_summary.c.updated_at).where(*where).scalar_subquery()
    row = (await tx.execute(select(read_at, func.clock_timestamp()))).one()
    return row[0], row[1]


async def save(tx: Transaction, summary: SessionSummary, read_at: datetime) -> None:
    """Store the summary of a locked session, as it was read at a time, in place of the one before."""
    fields = {name: getattr(summary, name) for name in SessionSummary.__slots__} | {"updated_at": read_at}
    statement = insert(session_summary).values(tenant=tx.tenant, **fields)
    changed = {name: statement.excluded[name] for name in fields}
    key = list(session_summary.primary_key)
    await tx.execute(statement.on_conflict_do_update(index_elements=key, set_=changed))


async def delete_covering(tx: Transaction, session_id: str, seq: int) -> bool:
    """Delete the summary of a locked session if it has turns from this number on; return whether it did."""
    where = (tenant_filter(session_summary, tx.tenant), session_summary.c.session_id == session_id)
    statement = delete(session_summary).where(*where, session_summary.c.last_seq >= seq)
    return (await tx.execute(statement)).rowcount > 0


async def delete_old(tx: Transaction, age: timedelta) -> int:
    """Delete the summaries that were last written longer ago than `age`, and return how many."""
    is_old = session_summary.c.updated_at < func.now() - age
    statement = delete(session_summary).where(tenant_filter(session_summary, tx.tenant), is_old)
    return (await tx.execute(statement)).rowcount


async def has_turns(tx: Transaction, session: Session, after: int, before: int) -> bool:
    """Return whether a session has turns between two numbers, without these."""
    is_between = (turn.c.session_id == session.id, turn.c.seq > after, turn.c.seq < before)
    statement = select(exists().where(tenant_filter(turn, session.tenant), *is_between))
    return bool(await tx.scalar(statement))


async def list_turns(tx: Transaction, session: Session, after: int, before: int, limit: int) -> list[Turn]:
    """Return the first turns of a session between two numbers, without these, in their order."""
    is_between = (turn.c.session_id == session.id, turn.c.seq > after, turn.c.seq < before)
    statement = select(*READ_COLUMNS).where(tenant_filter(turn, session.tenant), *is_between)
    return await turn_queries.select_turns(tx, statement.order_by(turn.c.seq).limit(limit))
