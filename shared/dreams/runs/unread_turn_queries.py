"""Statements on the turns of exactly one scope that a pass has not read yet.

A pass marks each turn that it read, and not a position up to which it has read. Turns are committed out
of order, so a turn that arrives while the model is asked would lie before that position and stay unread.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, exists, literal, select
from sqlalchemy.dialects.postgresql import insert

from shared.conversation.sessions.session import SessionKind
from shared.conversation.sessions.table import session as session_table
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.table import READ_COLUMNS
from shared.conversation.turns.table import turn as turn_table
from shared.conversation.turns.turn import Turn
from shared.dreams.runs.table import dream_read_turn
from shared.foundation.roles import Role
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass
from shared.infra.postgres import exact_scope, is_any_turn_of, tenant_filter
from shared.infra.transaction import Transaction


async def list_oldest_unread(
    tx: Transaction, scope: Scope, name: DreamPass, limit: int, *conditions: ColumnElement[bool]
) -> tuple[list[Turn], bool]:
    """Return the `limit` oldest unread turns of the scope that meet the conditions, and if there are more."""
    statement = (
        select(*READ_COLUMNS)
        .where(exact_scope(turn_table, scope), ~_is_read_by(name), *conditions)
        .order_by(turn_table.c.received_at, turn_table.c.session_id, turn_table.c.seq)
        .limit(limit + 1)
    )
    turns = await turn_queries.select_turns(tx, statement)
    has_more = len(turns) > limit
    return sorted(turns[:limit], key=lambda turn: (turn.session_id, turn.seq)), has_more


async def count_unread(
    tx: Transaction, scope: Scope, name: DreamPass, limit: int, *conditions: ColumnElement[bool]
) -> int:
    """Return how many unread turns of the scope meet the conditions, counted up to `limit`."""
    statement = select(turn_table.c.seq).where(
        exact_scope(turn_table, scope), ~_is_read_by(name), *conditions
    )
    return len((await tx.scalars(statement.limit(limit))).all())


def is_mineable() -> ColumnElement[bool]:
    """Return the condition that a turn may tell facts: of a user or an assistant, and no patrol's."""
    is_of_session = exists(
        select(session_table.c.id).where(
            session_table.c.tenant == turn_table.c.tenant,
            session_table.c.id == turn_table.c.session_id,
            session_table.c.kind == SessionKind.SESSION,
        )
    )
    return and_(turn_table.c.role.in_((Role.USER, Role.ASSISTANT)), is_of_session)


def _is_read_by(name: DreamPass) -> ColumnElement[bool]:
    return exists(
        select(dream_read_turn.c.seq).where(
            dream_read_turn.c.tenant == turn_table.c.tenant,
            dream_read_turn.c.session_id == turn_table.c.session_id,
            dream_read_turn.c.seq == turn_table.c.seq,
            dream_read_turn.c["pass"] == name,
        )
    )


async def mark_read(
    tx: Transaction, scope: Scope, name: DreamPass, turn_keys: Sequence[tuple[str, int]]
) -> None:
    """Mark turns, given as (session id, seq), as read by a pass. A turn that was deleted is left out."""
    if not turn_keys:
        return
    where = (
        tenant_filter(turn_table, scope.tenant),
        is_any_turn_of(turn_table.c.session_id, turn_table.c.seq, turn_keys),
    )
    rows = select(turn_table.c.tenant, literal(name.value), turn_table.c.session_id, turn_table.c.seq).where(
        *where
    )
    columns = ["tenant", "pass", "session_id", "seq"]
    await tx.execute(insert(dream_read_turn).from_select(columns, rows).on_conflict_do_nothing())
