"""Statements on what users ask for first in the sessions of exactly one scope."""

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import distinct_on

from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.table import READ_COLUMNS
from shared.conversation.turns.table import turn as turn_table
from shared.conversation.turns.turn import Turn
from shared.foundation.roles import Role
from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope
from shared.infra.transaction import Transaction


async def list_first_requests(tx: Transaction, scope: Scope, age: timedelta, limit: int) -> list[Turn]:
    """Return the first turn of a user in each session within `age`, in the order of the sessions' ids."""
    columns = turn_table.c
    where = (
        exact_scope(turn_table, scope),
        columns.role == Role.USER,
        columns.received_at > func.now() - age,
    )
    statement = (
        select(*READ_COLUMNS)
        .ext(distinct_on(columns.session_id))
        .where(*where)
        .order_by(columns.session_id, columns.seq)
        .limit(limit)
    )
    return await turn_queries.select_turns(tx, statement)
