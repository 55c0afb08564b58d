"""Read preferences: the agent's, and those of one of its users."""

from datetime import datetime

from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.infra.postgres import visible_scope
from shared.memory.preferences import domain_file, queries
from shared.memory.preferences.preference import Preference, check_key
from shared.memory.preferences.record_type import PREFERENCE
from shared.memory.preferences.table import preference
from shared.platform.resources import Resources


async def get(resources: Resources, scope: Scope, key: str) -> Preference:
    """Return what a scope has under a key: the user's own before the agent's, else that of the domain file.

    Raises errors.NotFound if there is none.
    """
    check_key(key)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        stored = await queries.find_visible(tx, scope, key)
    found = stored or domain_file.preferences(resources.settings, scope).get(key)
    if found is None:
        raise errors.NotFound(f"no preference '{key}'")
    return found


async def list_preferences(
    resources: Resources, scope: Scope, limit: int, after: tuple[datetime, str] | None
) -> list[Preference]:
    """Return what is stored and a scope sees, oldest first, from the position (created_at, id) `after` on."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await PREFERENCE.read_page(tx, limit, after, visible_scope(preference, scope))
