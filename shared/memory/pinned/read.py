"""Read pinned texts: the agent's, and those of one of its users."""

from datetime import datetime

from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.memory.pinned import queries
from shared.memory.pinned.pinned_text import PinnedText, check_name
from shared.platform.resources import Resources


async def get(resources: Resources, scope: Scope, name: str) -> PinnedText:
    """Return the text that a scope sees under a name: the user's own before the agent's.

    Raises errors.NotFound if there is neither.
    """
    check_name(name)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        pinned = await queries.find_visible(tx, scope, name)
    if pinned is None:
        raise errors.NotFound(f"no pinned text '{name}'")
    return pinned


async def list_texts(
    resources: Resources, scope: Scope, limit: int, after: tuple[datetime, str] | None
) -> list[PinnedText]:
    """Return the texts that a scope sees, oldest first, from the position (created_at, id) `after` on."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.list_page(tx, scope, limit, after)
