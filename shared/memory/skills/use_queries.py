"""Every statement on the use of skills. Functions take the caller's transaction and never commit."""

from collections.abc import Collection
from datetime import timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, delete, func, insert, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.postgres import is_any_of, tenant_filter
from shared.memory.skills.table import skill, skill_use

_SAME_USE = timedelta(minutes=1)
"""The last use of a skill is noted at most so often."""


class UsedBy(StrEnum):
    """Who used a skill: a caller who read it, or a context that showed it."""

    CALLER = "caller"
    CONTEXT = "context"


async def note_use(
    connection: AsyncConnection, tenant: str, ids: Collection[str], session_id: str | None, used_by: UsedBy
) -> None:
    """Note that skills are used now, those of them that still exist.

    Whoever is writing a skill meanwhile is not waited for: then the time of its last use stays.
    """
    if not ids:
        return
    is_meant = tenant_filter(skill, tenant) & is_any_of(skill.c.id, ids)
    existing = select(skill.c.tenant, skill.c.id, literal(session_id), literal(str(used_by))).where(is_meant)
    locked = existing.order_by(skill.c.id).with_for_update(read=True, key_share=True)
    names = ["tenant", "skill_id", "session_id", "used_by"]
    await connection.execute(insert(skill_use).from_select(names, locked))
    is_older = or_(skill.c.last_used_at.is_(None), skill.c.last_used_at < func.now() - _SAME_USE)
    free = select(skill.c.id).where(is_meant, is_older).order_by(skill.c.id)
    ids_of_free = free.with_for_update(skip_locked=True, key_share=True)
    statement = update(skill).where(tenant_filter(skill, tenant), skill.c.id.in_(ids_of_free))
    await connection.execute(statement.values(last_used_at=func.clock_timestamp()))


async def count_uses(
    connection: AsyncConnection, tenant: str, ids: Collection[str], age: timedelta
) -> dict[str, int]:
    """Return how often skills were used within `age`, by id, without those that were not."""
    columns = skill_use.c
    where = (tenant_filter(skill_use, tenant), is_any_of(columns.skill_id, ids), _is_recent(age))
    statement = select(columns.skill_id, func.count().label("uses")).where(*where).group_by(columns.skill_id)
    return {row.skill_id: row.uses for row in await connection.execute(statement)}


async def list_sessions(
    connection: AsyncConnection, tenant: str, ids: Collection[str], age: timedelta
) -> dict[str, set[str]]:
    """Return the sessions in which skills were used within `age`, by id."""
    columns = skill_use.c
    where = (tenant_filter(skill_use, tenant), is_any_of(columns.skill_id, ids), _is_recent(age))
    statement = select(columns.skill_id, columns.session_id).where(*where, columns.session_id.is_not(None))
    sessions: dict[str, set[str]] = {}
    for row in await connection.execute(statement):
        sessions.setdefault(row.skill_id, set()).add(row.session_id)
    return sessions


def _is_recent(age: timedelta) -> ColumnElement[bool]:
    return skill_use.c.created_at > func.now() - age


async def expire(connection: AsyncConnection, tenant: str, age: timedelta) -> int:
    """Delete uses longer ago than `age`, and return how many. The last use of each skill stays noted."""
    where = (tenant_filter(skill_use, tenant), skill_use.c.created_at < func.now() - age)
    return (await connection.execute(delete(skill_use).where(*where))).rowcount
