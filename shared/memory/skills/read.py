"""Read skills, their versions and their files."""

from datetime import datetime

from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres import visible_scope
from shared.memory.skills import file_queries, hit_queries, queries, use_queries
from shared.memory.skills.record_type import SKILL
from shared.memory.skills.skill import CatalogueEntry, Skill, SkillVersion, check_name
from shared.memory.skills.table import skill as skill_table
from shared.memory.skills.use_queries import UsedBy
from shared.platform.auth.rights import Action
from shared.platform.resources import Resources


async def load(
    resources: Resources, caller: Caller, scope: Scope, name: str, session_id: str | None = None
) -> Skill:
    """Return what a scope has under a name, for an agent that goes by it, and note the use.

    A key that may not write leaves no trace: it reads and notes nothing. Raises errors.NotFound if there is
    no such skill.
    """
    check_name(name)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        skill = await queries.find_visible(tx, scope, name)
        if skill is None:
            raise _missing(name)
        if Action.WRITE.value in caller.rights:
            await use_queries.note_use(tx, [skill.id], session_id, UsedBy.CALLER)
    return skill


async def find(resources: Resources, scope: Scope, name: str) -> Skill:
    """Return what a scope has under a name, and note no use. Raises errors.NotFound if there is none."""
    check_name(name)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        skill = await queries.find_visible(tx, scope, name)
    if skill is None:
        raise _missing(name)
    return skill


async def list_skills(
    resources: Resources, scope: Scope, limit: int, after: tuple[datetime, str] | None
) -> list[Skill]:
    """Return what a scope sees, oldest first, from the position (created_at, id) `after` on."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await SKILL.read_page(tx, limit, after, visible_scope(skill_table, scope))


async def list_in_force(resources: Resources, scope: Scope) -> list[CatalogueEntry]:
    """Return the skills that a scope goes by, in the order of their names. A user's own hides the agent's."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await hit_queries.list_catalogue(tx, scope)


async def list_versions(
    resources: Resources, scope: Scope, name: str, limit: int, after: tuple[datetime, str] | None
) -> list[SkillVersion]:
    """Return the versions of a skill, newest first. Raises errors.NotFound if there is no such skill."""
    if after is not None and not after[1].isdecimal():
        raise errors.Invalid("cursor", "is not one that a list has returned")
    skill = await find(resources, scope, name)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.list_versions(tx, skill, limit, after)


async def read_file(resources: Resources, scope: Scope, name: str, path: str) -> bytes:
    """Return the bytes of a file of a skill. Raises errors.NotFound if it has none of this path."""
    skill = await find(resources, scope, name)
    digests = [file.sha256 for file in skill.files if file.path == path]
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        contents = await file_queries.read(tx, skill.scope, digests)
    if not contents:
        raise errors.NotFound(f"skill '{name}' has no such file")
    return next(iter(contents.values()))


def _missing(name: str) -> errors.NotFound:
    return errors.NotFound(f"no skill '{name}'")
