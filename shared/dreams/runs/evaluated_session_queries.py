"""Which sessions were evaluated, up to which turn.

A session is due again when it has a turn after that one. The time of the evaluation would not do: a turn
that arrives while the model is asked was not read.
"""

from typing import Any

from sqlalchemy import ColumnElement, and_, case, exists, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from shared.conversation.sessions.table import session as session_table
from shared.conversation.turns.table import turn as turn_table
from shared.dreams.runs.table import dream_evaluated_session as evaluated
from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction

MAX_REFUSALS = 2
"""After this many unusable replies a session is left alone until it has another turn."""


def is_unevaluated() -> ColumnElement[bool]:
    """Return the condition that a row of `session` has turns that no evaluation covers."""
    last_seq = (
        select(func.max(turn_table.c.seq))
        .where(turn_table.c.tenant == session_table.c.tenant, turn_table.c.session_id == session_table.c.id)
        .scalar_subquery()
    )
    is_covered = evaluated.c.seq >= last_seq
    is_refused = and_(evaluated.c.refused_seq >= last_seq, evaluated.c.refusals >= MAX_REFUSALS)
    return last_seq.is_not(None) & ~exists(
        select(evaluated.c.session_id).where(
            evaluated.c.tenant == session_table.c.tenant,
            evaluated.c.session_id == session_table.c.id,
            or_(is_covered, is_refused),
        )
    )


async def mark_evaluated(tx: Transaction, session_id: str, seq: int) -> None:
    """Mark a session as evaluated up to a turn; do nothing if the session no longer exists."""
    await _upsert(tx, session_id, {"seq": seq})


async def mark_refused(tx: Transaction, session_id: str, seq: int) -> None:
    """Count an unusable reply about a session up to a turn."""
    is_same = evaluated.c.refused_seq == seq
    counted = {"refused_seq": seq, "refusals": case((is_same, evaluated.c.refusals + 1), else_=1)}
    await _upsert(tx, session_id, counted, {"refused_seq": seq, "refusals": 1})


async def _upsert(
    tx: Transaction, session_id: str, changes: dict[str, Any], values: dict[str, Any] | None = None
) -> None:
    # The lock keeps the session until the transaction ends; a foreign key would reject a deleted one.
    statement = select(session_table.c.id).where(
        tenant_filter(session_table, tx.tenant), session_table.c.id == session_id
    )
    if await tx.scalar(statement.with_for_update(key_share=True)) is None:
        return
    row = {"tenant": tx.tenant, "session_id": session_id, **(values or changes)}
    await tx.execute(
        insert(evaluated)
        .values(row)
        .on_conflict_do_update(index_elements=[evaluated.c.tenant, evaluated.c.session_id], set_=changes)
    )
