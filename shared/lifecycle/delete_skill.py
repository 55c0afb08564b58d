"""Delete a skill with every copy of its text, and the files that no other one has."""

from shared.foundation import versions
from shared.foundation.scope import Scope
from shared.foundation.versions import ABSENT, Expected
from shared.lifecycle import deletion
from shared.lifecycle.deletion import Deletion
from shared.memory.skills import file_queries, queries
from shared.memory.skills.skill import check_name
from shared.platform.resources import Resources


async def delete_skill(
    resources: Resources, scope: Scope, name: str, expected: Expected | None = None
) -> bool:
    """Delete the skill that exactly this scope has under a name, and return whether there was one.

    Raises errors.PreconditionFailed unless its version is `expected`.
    """
    check_name(name)
    async with resources.transaction(scope.tenant) as tx:
        await queries.lock_scope(tx, scope)
        skill = await queries.lock(tx, scope, name)
        versions.check(f"skill '{name}'", skill.version if skill else ABSENT, expected)
        if skill is None:
            return False
        rows = Deletion(scope.tenant)
        await deletion.add_skills(tx, rows, [skill.searchable])
        await deletion.delete(tx, resources, rows)
        await file_queries.delete_unused(tx, scope)
        return True
