"""Every statement on the use of skills. Functions take the caller's transaction and never commit."""

from collections.abc import Collection
from datetime import timedelta
from enum import StrEnum

from sqlalchemy import ARRAY, ColumnElement, Interval, Text, bindparam, delete, func, select, text

from shared.infra.postgres import is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.skills.table import skill_use

_SAME_USE = timedelta(minutes=1)
"""The last use of a skill is noted at most so often."""


class UsedBy(StrEnum):
    """Who used a skill: a caller who read it, or a context that showed it."""

    CALLER = "caller"
    CONTEXT = "context"


# The insertion runs first: a row that this statement has already changed could not be locked by it.
_NOTE = text(
    """
    WITH used_now AS (
        UPDATE skill SET last_used_at = clock_timestamp()
        WHERE tenant = :tenant AND id IN (
            SELECT id FROM skill
            WHERE tenant = :tenant AND id = ANY (:ids)
                AND (last_used_at IS NULL OR last_used_at < now() - CAST(:same_use AS interval))
            ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
        )
    )
    INSERT INTO skill_use (tenant, skill_id, session_id, used_by)
    SELECT :tenant, existing.id, CAST(:session_id AS text), :used_by FROM (
        SELECT id FROM skill WHERE tenant = :tenant AND id = ANY (:ids) ORDER BY id FOR KEY SHARE
    ) AS existing
    """
).bindparams(bindparam("ids", type_=ARRAY(Text)), bindparam("same_use", _SAME_USE, type_=Interval))


async def note_use(tx: Transaction, ids: Collection[str], session_id: str | None, used_by: UsedBy) -> None:
    """Note that skills are used now, those of them that still exist.

    Whoever is writing a skill meanwhile is not waited for: then the time of its last use stays.
    """
    if ids:
        who = {"session_id": session_id, "used_by": str(used_by)}
        await tx.fetch(_NOTE, {"tenant": tx.tenant, "ids": list(ids), **who})


async def count_uses(tx: Transaction, ids: Collection[str], age: timedelta) -> dict[str, int]:
    """Return how often skills were used within `age`, by id, without those that were not."""
    columns = skill_use.c
    where = (tenant_filter(skill_use, tx.tenant), is_any_of(columns.skill_id, ids), _is_recent(age))
    statement = select(columns.skill_id, func.count().label("uses")).where(*where).group_by(columns.skill_id)
    return {row.skill_id: row.uses for row in await tx.execute(statement)}


async def list_sessions(tx: Transaction, ids: Collection[str], age: timedelta) -> dict[str, set[str]]:
    """Return the sessions in which skills were used within `age`, by id."""
    columns = skill_use.c
    where = (tenant_filter(skill_use, tx.tenant), is_any_of(columns.skill_id, ids), _is_recent(age))
    statement = select(columns.skill_id, columns.session_id).where(*where, columns.session_id.is_not(None))
    sessions: dict[str, set[str]] = {}
    for row in await tx.execute(statement):
        sessions.setdefault(row.skill_id, set()).add(row.session_id)
    return sessions


def _is_recent(age: timedelta) -> ColumnElement[bool]:
    return skill_use.c.created_at > func.now() - age


async def expire(tx: Transaction, age: timedelta) -> int:
    """Delete uses longer ago than `age`, and return how many. The last use of each skill stays noted."""
    where = (tenant_filter(skill_use, tx.tenant), skill_use.c.created_at < func.now() - age)
    return (await tx.execute(delete(skill_use).where(*where))).rowcount
