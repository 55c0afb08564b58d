"""The statements on skills and their versions that no other kind has. They take the caller's transaction."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import insert

from shared.foundation.content import Subject
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import (
    advisory_lock_key,
    exact_scope,
    is_any_of,
    tenant_filter,
    visible_scope,
)
from shared.infra.transaction import Transaction
from shared.memory.skills.record_type import SKILL
from shared.memory.skills.skill import SearchableSkill, Skill, SkillVersion
from shared.memory.skills.table import skill as skill_table
from shared.memory.skills.table import skill_version

_OWNER_COLUMNS = {Subject.USER: "user_id", Subject.AGENT: "agent_id"}
_VERSIONED = ("summary", "content", "see_also", "front_matter", "files", "origin")


def in_force(scope: Scope) -> ColumnElement[bool]:
    """Return the condition that a scope goes by a skill: the agent's gives way to the user's own."""
    visible = visible_scope(skill_table, scope)
    if scope.user_id is None:
        return visible
    own = skill_table.alias("own")
    own_under_name = select(own.c.id).where(
        *(own.c.tenant == scope.tenant, own.c.agent_id == scope.agent_id, own.c.user_id == scope.user_id),
        own.c.name == skill_table.c.name,
    )
    return and_(visible, or_(skill_table.c.user_id == scope.user_id, ~exists(own_under_name)))


async def lock_scope(tx: Transaction, scope: Scope) -> None:
    """Let no other transaction write skills or their files in this scope until this one ends."""
    key = advisory_lock_key(
        "skills", scope.tenant, scope.agent_id, *([scope.user_id] if scope.user_id else [])
    )
    await tx.execute(select(func.pg_advisory_xact_lock(key)))


async def lock(tx: Transaction, scope: Scope, name: str) -> Skill | None:
    """Lock and return the skill that exactly this scope has under a name, or None."""
    return await SKILL.find(tx, exact_scope(skill_table, scope), skill_table.c.name == name, lock=True)


async def find_visible(tx: Transaction, scope: Scope, name: str) -> Skill | None:
    """Return what a scope sees under a name: the user's own before the agent's. Or None."""
    where = (visible_scope(skill_table, scope), skill_table.c.name == name)
    return await SKILL.find(tx, *where, order=(skill_table.c.user_id.nulls_last(),))


async def list_of_scope(tx: Transaction, scope: Scope) -> list[Skill]:
    """Return the skills that exactly this scope has, by name."""
    return await SKILL.read(tx, exact_scope(skill_table, scope), order=(skill_table.c.name,))


async def insert_new(
    tx: Transaction, scope: Scope, columns: Mapping[str, Any], origin: Origin
) -> Skill | None:
    """Insert a skill and its first version, and return it; None if the name is taken."""
    inserted = await SKILL.insert_unless_taken(tx, {**prepared.scope_values(scope), **columns}, origin)
    return None if inserted is None else await _with_version(tx, inserted)


async def replace(tx: Transaction, skill: Skill, columns: Mapping[str, Any], origin: Origin) -> Skill:
    """Replace columns of a locked skill, and return it in its new version."""
    return await _with_version(tx, await SKILL.replace(tx, skill.id, columns, origin))


async def set_times(
    tx: Transaction, skill: Skill, created_at: datetime, last_used_at: datetime | None
) -> Skill:
    """Give a locked skill the times of what it stands for, and return it."""
    times = {"created_at": created_at, "last_used_at": last_used_at}
    return await SKILL.update(tx, skill.id, times) or skill


async def _with_version(tx: Transaction, skill: Skill) -> Skill:
    """Note the current version of a skill among its versions, and return the skill."""
    fields = skill.model_dump(include={*_VERSIONED} - {"origin"})
    fields |= {"front_matter": skill.front_matter.to_json(), "origin": skill.written_by}
    values = fields | {"tenant": skill.tenant, "skill_id": skill.id, "version": skill.version}
    await tx.execute(insert(skill_version).values(values))
    return skill


async def add_first_versions(tx: Transaction, scope: Scope) -> None:
    """Note the current version of each skill of exactly this scope that has no version yet."""
    names = ("tenant", "skill_id", "version", *_VERSIONED)
    columns = [skill_table.c["id" if name == "skill_id" else name] for name in names]
    is_version = (skill_version.c.tenant == skill_table.c.tenant) & (
        skill_version.c.skill_id == skill_table.c.id
    )
    without = ~exists(select(skill_version.c.skill_id).where(is_version))
    new_rows = select(*columns).where(exact_scope(skill_table, scope), without)
    await tx.execute(insert(skill_version).from_select(names, new_rows))


async def prune_versions(tx: Transaction, skill: Skill, kept: int) -> int:
    """Delete all but the newest versions of a skill, and return how many were deleted."""
    of_skill = _versions_of(skill)
    oldest_kept = (
        select(skill_version.c.version)
        .where(of_skill)
        .order_by(skill_version.c.version.desc())
        .offset(kept - 1)
        .limit(1)
        .scalar_subquery()
    )
    statement = delete(skill_version).where(of_skill, skill_version.c.version < oldest_kept)
    return (await tx.execute(statement)).rowcount


async def list_versions(
    tx: Transaction, skill: Skill, limit: int, after: tuple[datetime, str] | None
) -> list[SkillVersion]:
    """Return the versions of a skill, newest first, from the position (created_at, version) `after` on."""
    conditions = [_versions_of(skill)]
    if after is not None:
        conditions.append(skill_version.c.version < int(after[1]))
    statement = select(skill_version).where(*conditions).order_by(skill_version.c.version.desc())
    rows = (await tx.execute(statement.limit(limit))).mappings()
    return [SkillVersion.from_row(row) for row in rows]


def _versions_of(skill: Skill) -> ColumnElement[bool]:
    return and_(tenant_filter(skill_version, skill.tenant), skill_version.c.skill_id == skill.id)


async def lock_of(tx: Transaction, subject: Subject, ids: Sequence[str]) -> list[SearchableSkill]:
    """Lock and return the skills of users or agents, in the order of their ids."""
    columns = skill_table.c
    where = (tenant_filter(skill_table, tx.tenant), is_any_of(columns[_OWNER_COLUMNS[subject]], ids))
    description = columns.front_matter["description"].astext
    statement = select(columns.id, columns.name, columns.summary, description).where(*where)
    rows = await tx.execute(statement.order_by(columns.id).with_for_update())
    return [SearchableSkill(*row) for row in rows]


_LOCK_VERSIONS = text(
    """
    WITH locked AS (
        SELECT id, version FROM skill WHERE tenant = :tenant AND id = ANY (:ids) ORDER BY id FOR KEY SHARE
    )
    SELECT id, version FROM locked
    UNION ALL
    SELECT id, version FROM skill WHERE tenant = :tenant AND id = ANY (:others)
    """
).bindparams(bindparam("ids", type_=ARRAY(Text)), bindparam("others", type_=ARRAY(Text)))


async def lock_existing(
    tx: Transaction, ids: Collection[str], others: Collection[str] = ()
) -> dict[str, int]:
    """Lock skills against deletion; return their versions, and those of `others`, by id.

    What does not exist has none.
    """
    if not ids and not others:
        return {}
    values = {"tenant": tx.tenant, "ids": list(ids), "others": list(others)}
    rows = await tx.fetch(_LOCK_VERSIONS, values)
    return {row["id"]: row["version"] for row in rows}
