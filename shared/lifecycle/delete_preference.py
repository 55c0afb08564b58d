"""Delete a preference with every copy of its text. A tombstone keeps others from bringing it back."""

from shared.foundation import versions
from shared.foundation.scope import Scope
from shared.foundation.versions import ABSENT, Expected
from shared.lifecycle import deletion
from shared.lifecycle.deletion import Deletion
from shared.memory.longterm import tombstones
from shared.memory.preferences import queries
from shared.memory.preferences.preference import check_key, tombstone_text
from shared.platform.resources import Resources


async def delete_preference(
    resources: Resources, scope: Scope, key: str, expected: Expected | None = None
) -> bool:
    """Delete the preference that exactly this scope has under a key, and return whether there was one.

    Raises errors.PreconditionFailed unless its version is `expected`.
    """
    check_key(key)
    async with resources.transaction(scope.tenant) as tx:
        preference = await queries.lock(tx, scope, key)
        versions.check(f"preference '{key}'", preference.version if preference else ABSENT, expected)
        if preference is None:
            return False
        text = tombstone_text(key, preference.draft)
        await tombstones.add_texts(tx, scope, {preference.id: text})
        rows = Deletion(scope.tenant)
        await deletion.add_preferences(tx, rows, {preference.id: preference.condition.description})
        await deletion.delete(tx, resources, rows)
        return True
