"""Every statement on skills and their versions. Functions take the caller's transaction and never commit."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import uuid_utils
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Text,
    and_,
    any_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from shared.foundation.content import Subject
from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import (
    advisory_lock_key,
    exact_scope,
    is_any_of,
    keyset_after,
    tenant_filter,
    visible_scope,
)
from shared.infra.transaction import Transaction
from shared.memory.skills.skill import SearchableSkill, Skill, SkillVersion
from shared.memory.skills.table import READ_COLUMNS, skill_version
from shared.memory.skills.table import skill as skill_table
from shared.search.text import tsvector

_NEXT_VERSION = text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
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
    is_named = and_(exact_scope(skill_table, scope), skill_table.c.name == name)
    rows = (await tx.execute(select(*READ_COLUMNS).where(is_named).with_for_update())).mappings()
    return next((Skill.from_row(row) for row in rows), None)


async def find_visible(tx: Transaction, scope: Scope, name: str) -> Skill | None:
    """Return what a scope sees under a name: the user's own before the agent's. Or None."""
    where = (visible_scope(skill_table, scope), skill_table.c.name == name)
    own_first = select(*READ_COLUMNS).where(*where).order_by(skill_table.c.user_id.nulls_last())
    row = (await tx.execute(own_first.limit(1))).mappings().one_or_none()
    return None if row is None else Skill.from_row(row)


async def list_page(
    tx: Transaction, scope: Scope, limit: int, after: tuple[datetime, str] | None
) -> list[Skill]:
    """Return what a scope sees, oldest first, from the position (created_at, id) `after` on."""
    conditions = [visible_scope(skill_table, scope)]
    if after is not None:
        created_at, skill_id = after
        keys = ((skill_table.c.created_at, created_at, False), (skill_table.c.id, skill_id, False))
        conditions.append(keyset_after(*keys))
    oldest_first = (skill_table.c.created_at, skill_table.c.id)
    statement = select(*READ_COLUMNS).where(*conditions).order_by(*oldest_first).limit(limit)
    return [Skill.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_of_scope(tx: Transaction, scope: Scope) -> list[Skill]:
    """Return the skills that exactly this scope has, by name."""
    statement = select(*READ_COLUMNS).where(exact_scope(skill_table, scope)).order_by(skill_table.c.name)
    return [Skill.from_row(row) for row in (await tx.execute(statement)).mappings()]


_LIST = select(*READ_COLUMNS).where(
    skill_table.c.tenant == bindparam("tenant"), skill_table.c.id == any_(bindparam("ids", type_=ARRAY(Text)))
)


async def list_by_ids(tx: Transaction, ids: Sequence[str]) -> list[Skill]:
    """Return the existing skills among `ids`, in no particular order."""
    rows = await tx.fetch(_LIST, {"tenant": tx.tenant, "ids": list(ids)})
    return [Skill.from_row(row) for row in rows]


async def list_matching(tx: Transaction, scope: Scope, terms: Sequence[str], limit: int) -> list[Skill]:
    """Return skills in force that have any of the terms, best first."""
    if not terms:
        return []
    matches, rank = tsvector.matches_any(skill_table.c.search_terms, terms)
    statement = select(*READ_COLUMNS).where(in_force(scope), matches)
    best_first = statement.order_by(rank.desc(), skill_table.c.name).limit(limit)
    return [Skill.from_row(row) for row in (await tx.execute(best_first)).mappings()]


async def count_in_scope(tx: Transaction, scope: Scope) -> int:
    """Return the number of skills that exactly this scope has."""
    statement = select(func.count()).select_from(skill_table).where(exact_scope(skill_table, scope))
    return int(await tx.scalar(statement) or 0)


async def insert_new(
    tx: Transaction, scope: Scope, name: str, columns: Mapping[str, Any], search_text: str
) -> Skill | None:
    """Insert a skill and its first version, and return it; None if the name is taken."""
    new_columns = {"id": str(uuid_utils.uuid7()), "name": name, "version": _NEXT_VERSION}
    values = prepared.scope_values(scope) | new_columns | dict(columns) | _terms(search_text)
    statement = insert(skill_table).values(values).on_conflict_do_nothing().returning(*READ_COLUMNS)
    row = (await tx.execute(statement)).mappings().one_or_none()
    return None if row is None else await _with_version(tx, Skill.from_row(row))


async def replace(tx: Transaction, skill: Skill, columns: Mapping[str, Any], search_text: str) -> Skill:
    """Replace columns of a locked skill, and return it in its new version."""
    version = func.greatest(skill_table.c.version + 1, _NEXT_VERSION)
    values = {**columns, **_terms(search_text), "version": version, "updated_at": func.clock_timestamp()}
    is_row = (tenant_filter(skill_table, skill.tenant), skill_table.c.id == skill.id)
    statement = update(skill_table).where(*is_row).values(values).returning(*READ_COLUMNS)
    replaced = Skill.from_row((await tx.execute(statement)).mappings().one())
    return await _with_version(tx, replaced)


async def set_times(
    tx: Transaction, skill: Skill, created_at: datetime, last_used_at: datetime | None
) -> Skill:
    """Give a locked skill the times of what it stands for, and return it."""
    is_row = (tenant_filter(skill_table, skill.tenant), skill_table.c.id == skill.id)
    values = {"created_at": created_at, "last_used_at": last_used_at}
    statement = update(skill_table).where(*is_row).values(values).returning(*READ_COLUMNS)
    return Skill.from_row((await tx.execute(statement)).mappings().one())


def _terms(search_text: str) -> dict[str, Any]:
    terms = literal(tsvector.terms_of(search_text), ARRAY(Text))
    return {"search_terms": func.array_to_tsvector(terms)}


async def _with_version(tx: Transaction, skill: Skill) -> Skill:
    """Note the current version of a skill among its versions, and return the skill."""
    fields = skill.model_dump(include={*_VERSIONED}) | {"front_matter": skill.front_matter.to_json()}
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


async def versions(tx: Transaction, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the version of each of these skills that exists, by id."""
    columns = skill_table.c
    where = (tenant_filter(skill_table, tx.tenant), is_any_of(columns.id, record_ids))
    rows = await tx.execute(select(columns.id, columns.version).where(*where))
    return {row.id: row.version for row in rows}


async def page_versions(tx: Transaction, after: str, limit: int) -> dict[str, int]:
    """Return one page of a tenant's skills, ordered by id, as id → version."""
    columns = skill_table.c
    where = (tenant_filter(skill_table, tx.tenant), columns.id > after)
    statement = select(columns.id, columns.version).where(*where).order_by(columns.id).limit(limit)
    return {row.id: row.version for row in await tx.execute(statement)}


async def count(tx: Transaction) -> int:
    """Return the number of a tenant's skills."""
    where = tenant_filter(skill_table, tx.tenant)
    return int(await tx.scalar(select(func.count()).select_from(skill_table).where(where)) or 0)
