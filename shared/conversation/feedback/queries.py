"""Every statement on feedback signals. Functions take the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, exists, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from shared.conversation.feedback.detect import COUNTED_SCORE
from shared.conversation.feedback.feedback_signal import (
    DoubtfulCorrection,
    FeedbackSignal,
    FeedbackSignalDraft,
    SignalType,
)
from shared.conversation.feedback.table import feedback_signal
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.conversation.sessions.table import session as session_table
from shared.foundation.ids import new_record_id
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres import exact_scope, keyset_after, tenant_filter
from shared.infra.transaction import Transaction


async def insert_rows(
    tx: Transaction, session: Session, drafts: Sequence[FeedbackSignalDraft]
) -> list[FeedbackSignal]:
    """Insert signals of a session and return them."""
    return await _insert_with_new_ids(tx, session.id, session.agent_id, session.user_id, drafts)


async def insert_for_session_id(tx: Transaction, session_id: str, draft: FeedbackSignalDraft) -> None:
    """Insert a signal for a session id; do nothing if the session no longer exists.

    The lock keeps the session until the transaction ends; a foreign key would reject a deleted one.
    """
    statement = select(session_table.c.agent_id, session_table.c.user_id).where(
        tenant_filter(session_table, tx.tenant), session_table.c.id == session_id
    )
    row = (await tx.execute(statement.with_for_update(key_share=True))).one_or_none()
    if row is not None:
        await _insert_with_new_ids(tx, session_id, row.agent_id, row.user_id, [draft])


async def _insert_with_new_ids(
    tx: Transaction,
    session_id: str,
    agent_id: str,
    user_id: str | None,
    drafts: Sequence[FeedbackSignalDraft],
) -> list[FeedbackSignal]:
    """Insert signals under random ids and return them; a signal whose id exists gets another one."""
    owner = {"tenant": tx.tenant, "session_id": session_id, "agent_id": agent_id, "user_id": user_id}
    signals: list[FeedbackSignal] = []
    remaining = list(drafts)
    while remaining:
        drafts_by_id = {new_record_id(): draft for draft in remaining}
        inserted_signals = await _insert(tx, owner, drafts_by_id)
        signals += inserted_signals
        existing_ids = drafts_by_id.keys() - {signal.id for signal in inserted_signals}
        remaining = [drafts_by_id[signal_id] for signal_id in existing_ids]
    return signals


async def _insert(
    tx: Transaction, owner: Mapping[str, str | None], drafts_by_id: Mapping[str, FeedbackSignalDraft]
) -> list[FeedbackSignal]:
    values = [{**owner, "id": signal_id, **draft.model_dump()} for signal_id, draft in drafts_by_id.items()]
    statement = insert(feedback_signal).values(values).on_conflict_do_nothing().returning(feedback_signal)
    return [FeedbackSignal.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_newest(tx: Transaction, scope: Scope, days: float, limit: int) -> list[FeedbackSignal]:
    """Return signals of the last `days` days of exactly this scope, newest first."""
    where = (exact_scope(feedback_signal, scope), _is_newer_than(days))
    return await _select_newest(tx, where, limit)


def _is_newer_than(days: float) -> ColumnElement[bool]:
    return feedback_signal.c.created_at >= func.now() - timedelta(days=days)


async def list_oldest(
    tx: Transaction, scope: Scope, days: float, limit: int, *conditions: ColumnElement[bool]
) -> list[FeedbackSignal]:
    """Return signals of the last `days` days of exactly this scope that meet the conditions, oldest first."""
    where = (exact_scope(feedback_signal, scope), _is_newer_than(days), *conditions)
    oldest_first = (feedback_signal.c.created_at, feedback_signal.c.id)
    statement = select(feedback_signal).where(*where).order_by(*oldest_first).limit(limit)
    return [FeedbackSignal.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_page(
    tx: Transaction,
    caller: Caller,
    filters: Mapping[str, str],
    days: float,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[FeedbackSignal]:
    """Return signals of the last `days` days that the caller may see, newest first.

    Those of expired sessions are left out. `filters` are column values. `after` is the (created_at, id) of
    the last signal of the previous page.
    """
    conditions = [tenant_filter(feedback_signal, caller.tenant), _is_newer_than(days)]
    conditions.append(session_queries.session_is_live(feedback_signal))
    columns = {**filters, **caller.binding_filter}
    conditions += [feedback_signal.c[name] == value for name, value in columns.items()]
    if after is not None:
        created_at, signal_id = after
        keys = ((feedback_signal.c.created_at, created_at, True), (feedback_signal.c.id, signal_id, False))
        conditions.append(keyset_after(*keys))
    return await _select_newest(tx, conditions, limit)


async def _select_newest(
    tx: Transaction, conditions: Sequence[ColumnElement[bool]], limit: int
) -> list[FeedbackSignal]:
    likelihood = feedback_signal.c.likelihood
    counts = or_(likelihood.is_(None), likelihood >= COUNTED_SCORE)
    newest_first = (feedback_signal.c.created_at.desc(), feedback_signal.c.id)
    statement = select(feedback_signal).where(counts, *conditions).order_by(*newest_first).limit(limit)
    return [FeedbackSignal.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_doubtful(tx: Transaction, scope: Scope, days: float, limit: int) -> list[DoubtfulCorrection]:
    """Return doubtful corrections of the last `days` days of exactly this scope, newest first."""
    where = (
        exact_scope(feedback_signal, scope),
        _is_newer_than(days),
        feedback_signal.c.likelihood.is_not(None),
    )
    columns = (feedback_signal.c.id, feedback_signal.c.detail, feedback_signal.c.previous)
    statement = select(*columns).where(*where).order_by(feedback_signal.c.created_at.desc()).limit(limit)
    rows = (await tx.execute(statement)).mappings()
    return [DoubtfulCorrection.model_validate({**row}) for row in rows]


async def settle_doubtful(tx: Transaction, confirmed_ids: Sequence[str], rejected_ids: Sequence[str]) -> None:
    """Make doubtful corrections certain, and delete those that are none."""
    is_doubtful = (tenant_filter(feedback_signal, tx.tenant), feedback_signal.c.likelihood.is_not(None))
    is_confirmed = feedback_signal.c.id.in_(confirmed_ids)
    settled_values = {"likelihood": None, "previous": None}
    await tx.execute(update(feedback_signal).where(*is_doubtful, is_confirmed).values(settled_values))
    is_rejected = feedback_signal.c.id.in_(rejected_ids)
    await tx.execute(delete(feedback_signal).where(*is_doubtful, is_rejected))


async def last_verdict(tx: Transaction, session_id: str, since: datetime | None) -> SignalType | None:
    """Return what was reported last of a session: that the user is satisfied, is not, or corrects the agent.

    Only reports since a moment count. None: nothing was reported.
    """
    is_verdict = _is_verdict(tx.tenant, literal(session_id))
    statement = select(feedback_signal.c.type).where(is_verdict)
    if since is not None:
        statement = statement.where(feedback_signal.c.created_at >= since)
    newest_first = (feedback_signal.c.created_at.desc(), feedback_signal.c.id)
    signal_type = await tx.scalar(statement.order_by(*newest_first).limit(1))
    return None if signal_type is None else SignalType(signal_type)


def has_verdict(
    tenant: str, session_id: ColumnElement[str], since: ColumnElement[datetime]
) -> ColumnElement[bool]:
    """Return the condition that `last_verdict` finds one, in a statement that has both columns."""
    is_since = or_(since.is_(None), feedback_signal.c.created_at >= since)
    return exists(select(feedback_signal.c.id).where(_is_verdict(tenant, session_id), is_since))


def last_verdict_of(
    tenant: str, session_id: ColumnElement[str], since: ColumnElement[datetime]
) -> ColumnElement[str]:
    """Return what `last_verdict` finds, in a statement that has both columns; NULL for nothing."""
    is_since = or_(since.is_(None), feedback_signal.c.created_at >= since)
    newest_first = (feedback_signal.c.created_at.desc(), feedback_signal.c.id)
    statement = select(feedback_signal.c.type).where(_is_verdict(tenant, session_id), is_since)
    return statement.order_by(*newest_first).limit(1).scalar_subquery()


def _is_verdict(tenant: str, session_id: ColumnElement[str]) -> ColumnElement[bool]:
    verdicts = (SignalType.USER_THUMBS_UP, SignalType.USER_THUMBS_DOWN, SignalType.CORRECTION)
    return and_(
        tenant_filter(feedback_signal, tenant),
        feedback_signal.c.session_id == session_id,
        feedback_signal.c.type.in_(verdicts),
        feedback_signal.c.seq.is_(None),
    )


async def is_correction(tx: Transaction, session_id: str, seq: int) -> bool:
    """Return whether a turn of the user counts as a correction."""
    likelihood = feedback_signal.c.likelihood
    where = (
        tenant_filter(feedback_signal, tx.tenant),
        feedback_signal.c.session_id == session_id,
        feedback_signal.c.seq == seq,
        feedback_signal.c.type == SignalType.CORRECTION,
        or_(likelihood.is_(None), likelihood >= COUNTED_SCORE),
    )
    return bool(await tx.scalar(select(exists(select(feedback_signal.c.id).where(*where)))))


async def existing_ids(tx: Transaction, signal_ids: Sequence[str]) -> set[str]:
    """Return those of these ids that exist."""
    where = (tenant_filter(feedback_signal, tx.tenant), feedback_signal.c.id.in_(signal_ids))
    return set(await tx.scalars(select(feedback_signal.c.id).where(*where)))


async def count(tx: Transaction, session_ids: Sequence[str]) -> int:
    """Return the number of signals of these sessions."""
    where = (tenant_filter(feedback_signal, tx.tenant), feedback_signal.c.session_id.in_(session_ids))
    return int(await tx.scalar(select(func.count()).select_from(feedback_signal).where(*where)) or 0)


async def delete_expired(tx: Transaction, age: timedelta) -> int:
    """Delete signals older than `age`; return the number of deleted signals."""
    where = (tenant_filter(feedback_signal, tx.tenant), feedback_signal.c.created_at < func.now() - age)
    return (await tx.execute(delete(feedback_signal).where(*where))).rowcount
