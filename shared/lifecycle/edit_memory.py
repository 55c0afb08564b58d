"""Edit a memory by hand, with what follows it: the preference that was learnt with it, and the graph."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from shared.foundation.content import Subject
from shared.foundation.scope import Caller
from shared.foundation.versions import Expected
from shared.lifecycle import closed_facts, deletion
from shared.lifecycle.deletion import Deletion
from shared.memory.longterm import revert as memory_revert
from shared.memory.longterm import update as memory_update
from shared.memory.longterm.memory import Memory
from shared.memory.preferences import learnt, write
from shared.memory.preferences import queries as preference_queries
from shared.memory.preferences.preference import MAX_DESCRIPTION
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction


async def update(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    changes: Mapping[str, Any],
    reason: str | None = None,
    expected: Expected | None = None,
) -> Memory:
    """Apply changes to fields of a memory and return it. Raises errors as `longterm.update.update` does."""
    follow = partial(_follow, resources)
    return await memory_update.update(resources, caller, memory_id, changes, reason, expected, follow)


async def revert(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    version: int,
    reason: str | None = None,
    expected: Expected | None = None,
) -> Memory:
    """Give a memory the fields of an earlier version. Raises errors as `longterm.revert.revert` does."""
    follow = partial(_follow, resources)
    return await memory_revert.revert(resources, caller, memory_id, version, reason, expected, follow)


async def _follow(resources: Resources, tx: RecordTransaction, before: Memory, after: Memory) -> None:
    """Rewrite what was learnt with a memory; delete it if the text is too long for a rule.

    What the graph says because of it holds as long as the memory does.
    """
    await closed_facts.follow(tx, before, after)
    if after.content == before.content:
        return
    if len(after.content) <= MAX_DESCRIPTION:
        await write.index(tx, await learnt.rewrite(tx, after))
        return
    descriptions = await preference_queries.lock_of(tx, Subject.MEMORY, [after.id])
    if descriptions:
        rows = Deletion(after.tenant)
        await deletion.add_preferences(tx, rows, descriptions)
        await deletion.delete(tx, resources, rows)
