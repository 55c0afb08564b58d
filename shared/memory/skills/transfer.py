"""Export a skill as a zip archive, and import the skills of one."""

import asyncio
from typing import Any

from shared.foundation import errors
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.memory.skills import file_queries, queries, read, skill_zip, write
from shared.memory.skills.skill import Skill, SkillWriter
from shared.platform.resources import Resources

JsonObject = dict[str, Any]


async def export(resources: Resources, scope: Scope, name: str) -> bytes:
    """Return the archive of what a scope has under a name. Raises errors.NotFound if there is none."""
    skill = await read.find(resources, scope, name)
    digests = {file.sha256 for file in skill.files}
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        contents = await file_queries.read(tx, skill.scope, digests)
    if digests - contents.keys():
        raise errors.Busy("the skill is being written: try again")
    return await asyncio.to_thread(skill_zip.pack, skill, contents)


async def import_zip(resources: Resources, scope: Scope, raw: bytes, importer: Origin) -> list[JsonObject]:
    """Store the skills of an archive in exactly this scope: all of them, or none.

    Return {name, version, created, warnings} of each. Raises errors.Invalid for an archive that breaks a
    rule, and errors.LimitReached if there would be too many skills.
    """
    unpacked = await asyncio.to_thread(skill_zip.unpack, raw)
    stored: list[Skill] = []
    async with resources.transaction(scope.tenant) as tx:
        await queries.lock_scope(tx, scope)
        for item in sorted(unpacked, key=lambda skill: skill.name):
            await file_queries.add(tx, scope, item.contents)
            stored.append(
                await write.store(
                    tx,
                    resources.settings,
                    scope,
                    item.name,
                    item.draft,
                    SkillWriter.IMPORT,
                    importer.imported(importer),
                )
            )
        await write.index(tx, resources.settings, stored)
    warnings = {item.name: item.warnings for item in unpacked}
    return [
        {
            "name": skill.name,
            "version": skill.version,
            "created": skill.updated_at is None,
            "warnings": list(warnings[skill.name]),
        }
        for skill in stored
    ]
