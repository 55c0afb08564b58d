"""Read preferences: the agent's, and those of one of its users."""

from datetime import datetime

from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.memory.preferences import domain_file, queries
from shared.memory.preferences.preference import Preference, check_key
from shared.platform.resources import Resources


async def get(resources: Resources, scope: Scope, key: str) -> Preference:
    """Return what a scope has under a key: the user's own before the agent's, else that of the domain file.

    Raises errors.NotFound if there is none.
    """
    check_key(key)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        stored = await queries.find_visible(tx, scope, key)
    preference = stored or domain_file.preferences(resources.settings, scope).get(key)
    if preference is None:
        raise errors.NotFound(f"no preference '{key}'")
    return preference


async def list_preferences(
    resources: Resources, scope: Scope, limit: int, after: tuple[datetime, str] | None
) -> list[Preference]:
    """Return what is stored and a scope sees, oldest first, from the position (created_at, id) `after` on."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.list_page(tx, scope, limit, after)
