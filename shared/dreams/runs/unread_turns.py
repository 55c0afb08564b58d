"""The conversation log as passes read it: what this pass has not read yet, of exactly one scope.

A pass marks the very rows that it read, not a point up to which it has read: turns commit out
of order, and one that arrives while the model thinks must stay due.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, exists, literal, select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.table import turn
from shared.conversation.turns.turn import Turn
from shared.dreams.runs.table import dream_read_turn
from shared.foundation.prompt_safety import single_line
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass
from shared.infra.postgres import tenant_filter


async def list_unread(connection: AsyncConnection, scope: Scope, name: DreamPass, limit: int) -> list[Turn]:
    """Return turns of the scope that a pass has not read, the longest waiting first, whole by session."""
    statement = (
        select(turn)
        .where(*_exactly(scope), ~_read_by(name))
        .order_by(turn.c.received_at, turn.c.session_id, turn.c.seq)
        .limit(limit)
    )
    turns = await turn_queries.select_turns(connection, statement)
    return sorted(turns, key=lambda one: (one.session_id, one.seq))


def _exactly(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    same_user = turn.c.user_id.is_not_distinct_from(scope.user_id)
    return tenant_filter(turn, scope.tenant), turn.c.agent_id == scope.agent_id, same_user


def _read_by(name: DreamPass) -> ColumnElement[bool]:
    return exists(
        select(dream_read_turn.c.seq).where(
            dream_read_turn.c.tenant == turn.c.tenant,
            dream_read_turn.c.session_id == turn.c.session_id,
            dream_read_turn.c.seq == turn.c.seq,
            dream_read_turn.c["pass"] == name,
        )
    )


async def mark_read(
    connection: AsyncConnection, scope: Scope, name: DreamPass, places: Sequence[tuple[str, int]]
) -> None:
    """Mark exactly these turns as read by a pass; one that was deleted meanwhile is passed over."""
    if not places:
        return
    here = tuple_(turn.c.session_id, turn.c.seq).in_(list(places))
    still = select(turn.c.tenant, literal(name.value), turn.c.session_id, turn.c.seq)
    rows = still.where(tenant_filter(turn, scope.tenant), here)
    columns = ["tenant", "pass", "session_id", "seq"]
    await connection.execute(insert(dream_read_turn).from_select(columns, rows).on_conflict_do_nothing())


def render_turns(turns: Sequence[Turn]) -> str:
    """Return turns as a model reads them: by session, each with the number that it is named by."""
    lines: list[str] = []
    for place, one in enumerate(turns):
        if place == 0 or turns[place - 1].session_id != one.session_id:
            lines.append(f"## Session: {one.session_id}")
        lines.append(
            f"[{one.seq}] {single_line(one.speaker or one.role)} ({one.role}): {single_line(one.content)}"
        )
    return "\n".join(lines)
