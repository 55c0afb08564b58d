"""Edit a memory by hand, with what follows it: the preference that was learnt with it, and the graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.foundation.content import Subject
from shared.foundation.scope import Caller
from shared.foundation.versions import Expected
from shared.infra.transaction import Transaction
from shared.jobs.job import Job
from shared.lifecycle import closed_facts, deletion, removal
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.removal import Removal
from shared.memory.longterm import revert as memory_revert
from shared.memory.longterm import update as memory_update
from shared.memory.longterm.memory import Memory
from shared.memory.preferences import index_document, learnt, write
from shared.memory.preferences import queries as preference_queries
from shared.memory.preferences.preference import MAX_DESCRIPTION, Preference
from shared.platform.resources import Resources
from shared.search.index.writer import WRITE_THROUGH_SECONDS


async def update(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    changes: Mapping[str, Any],
    reason: str | None = None,
    expected: Expected | None = None,
) -> Memory:
    """Apply changes to fields of a memory and return it. Raises errors as `longterm.update.update` does."""
    followers = _Followers()
    memory = await memory_update.update(
        resources, caller, memory_id, changes, reason, expected, followers.follow
    )
    await followers.finish(resources)
    return memory


async def revert(
    resources: Resources,
    caller: Caller,
    memory_id: str,
    version: int,
    reason: str | None = None,
    expected: Expected | None = None,
) -> Memory:
    """Give a memory the fields of an earlier version. Raises errors as `longterm.revert.revert` does."""
    followers = _Followers()
    memory = await memory_revert.revert(
        resources, caller, memory_id, version, reason, expected, followers.follow
    )
    await followers.finish(resources)
    return memory


@dataclass(slots=True)
class _Followers:
    """The preferences that an edited memory has changed, and what is left to do after the commit."""

    rewritten: Sequence[Preference] = ()
    jobs: list[Job] = field(default_factory=list)
    rest: Removal | None = None

    async def follow(self, tx: Transaction, before: Memory, after: Memory) -> None:
        """Rewrite what was learnt with a memory; delete it if the text is too long for a rule.

        What the graph says because of it holds as long as the memory does.
        """
        await closed_facts.follow(tx, before, after)
        if after.content == before.content:
            return
        if len(after.content) <= MAX_DESCRIPTION:
            self.rewritten = await learnt.rewrite(tx, after)
            self.jobs = await write.enqueue(tx, self.rewritten, delay=WRITE_THROUGH_SECONDS)
            return
        descriptions = await preference_queries.lock_of(tx, Subject.MEMORY, [after.id])
        if descriptions:
            rows = Deletion(after.tenant)
            await deletion.add_preferences(tx, rows, descriptions)
            _, self.rest = await deletion.carry_out(tx, rows)

    async def finish(self, resources: Resources) -> None:
        """Index what was rewritten, and remove what was deleted."""
        if self.jobs:
            await resources.index_writer.write_through(index_document.documents(self.rewritten), self.jobs)
        if self.rest is not None:
            await removal.work_off(resources, self.rest)
