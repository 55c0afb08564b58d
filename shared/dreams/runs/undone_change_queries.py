"""Remember what was undone, so that the next run does not do the same again.

Of an undone merge the memories that it had joined are remembered as a group: no later merge may join two
of them, however it words the result. Of an undone archiving or closing the memory is. A memory leaves its
group when its content changes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import and_, select
from sqlalchemy.dialects.postgresql import insert

from shared.dreams.runs.table import dream_undone_change as undone
from shared.infra.postgres import is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import memory as memory_table

MERGED, CLOSED = "merged", "changed"
"""Reasons: the memory was merged with others, or closed because something has changed."""


@dataclass(slots=True)
class UndoneChanges:
    """The undone changes of some memories: joined groups, and memories that were archived or closed."""

    groups: dict[str, set[str]] = field(default_factory=dict)
    archived_ids: set[str] = field(default_factory=set)
    closed_ids: set[str] = field(default_factory=set)

    def forbids_merge(self, ids: Collection[str]) -> bool:
        """Tell whether a merge of these memories would repeat an undone one."""
        return any(len(group & set(ids)) >= min(2, len(group)) for group in self._groups_like(ids))

    def _groups_like(self, ids: Collection[str]) -> list[set[str]]:
        """Return the groups to compare: rewording a memory alone is no merge of two."""
        is_single = len(set(ids)) == 1
        return [group for group in self.groups.values() if (len(group) == 1) == is_single]


async def find(tx: Transaction, ids: Collection[str]) -> UndoneChanges:
    """Return the undone changes of these memories and of those in a group with them."""
    groups = select(undone.c.group_id).where(
        tenant_filter(undone, tx.tenant), is_any_of(undone.c.memory_id, ids)
    )
    is_unchanged = and_(
        memory_table.c.tenant == undone.c.tenant,
        memory_table.c.id == undone.c.memory_id,
        memory_table.c.content_version == undone.c.content_version,
    )
    statement = (
        select(undone.c.group_id, undone.c.memory_id, undone.c.reason)
        .join(memory_table, is_unchanged)
        .where(tenant_filter(undone, tx.tenant), undone.c.group_id.in_(groups))
    )
    changes = UndoneChanges()
    for row in await tx.execute(statement):
        if row.reason == MERGED:
            changes.groups.setdefault(row.group_id, set()).add(row.memory_id)
        elif row.reason == CLOSED:
            changes.closed_ids.add(row.memory_id)
        else:
            changes.archived_ids.add(row.memory_id)
    return changes


async def add_group(tx: Transaction, group_id: str, memories: Sequence[Memory], reason: str) -> None:
    """Remember an undone change; `reason` is `MERGED`, `CLOSED` or why the memories were archived."""
    rows: list[Mapping[str, object]] = [
        {
            "tenant": tx.tenant,
            "group_id": group_id,
            "memory_id": memory.id,
            "content_version": memory.content_version,
            "reason": reason,
        }
        for memory in memories
    ]
    if rows:
        await tx.execute(insert(undone).values(rows).on_conflict_do_nothing())
