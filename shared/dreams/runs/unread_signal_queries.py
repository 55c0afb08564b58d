"""The corrections of exactly one scope that a pass has not read yet.

Each signal that a pass was given is marked. A time up to which signals were read would not do: a
correction that arrives while the model is asked lies before the end of the pass.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import exists, literal, select
from sqlalchemy.dialects.postgresql import insert

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.feedback.feedback_signal import FeedbackSignal, SignalType
from shared.conversation.feedback.table import feedback_signal
from shared.dreams.runs.table import dream_read_signal
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass
from shared.infra.postgres import is_any_of, tenant_filter
from shared.infra.transaction import Transaction


async def list_unread_corrections(
    tx: Transaction, scope: Scope, name: DreamPass, *, days: float, limit: int
) -> list[FeedbackSignal]:
    """Return the `limit` oldest corrections of the last `days` days that a pass has not read."""
    types = (SignalType.CORRECTION,)
    return await list_unread(tx, scope, name, types, days=days, limit=limit)


async def list_unread(
    tx: Transaction, scope: Scope, name: DreamPass, types: Collection[SignalType], *, days: float, limit: int
) -> list[FeedbackSignal]:
    """Return the `limit` oldest signals of these types of the last `days` days that a pass has not read."""
    is_read = exists(
        select(dream_read_signal.c.signal_id).where(
            dream_read_signal.c.tenant == feedback_signal.c.tenant,
            dream_read_signal.c.signal_id == feedback_signal.c.id,
            dream_read_signal.c["pass"] == name,
        )
    )
    is_of_type = feedback_signal.c.type.in_(types)
    return await feedback_queries.list_oldest(tx, scope, days, limit, is_of_type, ~is_read)


async def mark_read(tx: Transaction, scope: Scope, name: DreamPass, signal_ids: Sequence[str]) -> None:
    """Mark signals as read by a pass. A signal that was deleted is left out."""
    if not signal_ids:
        return
    rows = select(feedback_signal.c.tenant, literal(name.value), feedback_signal.c.id).where(
        tenant_filter(feedback_signal, scope.tenant), is_any_of(feedback_signal.c.id, signal_ids)
    )
    columns = ["tenant", "pass", "signal_id"]
    await tx.execute(insert(dream_read_signal).from_select(columns, rows).on_conflict_do_nothing())
