"""Delete the memories of exactly one scope that match a filter, with every copy of their text.

As with a single deletion, the archived memories that they were made from go with them, as do those made
from nothing but a matching archived one, and tombstones prevent their return. Memories match whatever their
validity; archived ones if the filter asks for their state.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from shared.foundation import errors
from shared.foundation.content import Subject
from shared.foundation.filter_expression import AllOf, Comparison, FieldType, Operator, parse
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle import deletion, erased_rows
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.relatives import with_relatives
from shared.lifecycle.removal import Removal
from shared.memory.longterm import matching_queries, tombstones
from shared.memory.longterm.filter_fields import FIELDS
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.matching_queries import LockedMatch

_MAX_ATTEMPTS = 5
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Matching:
    """The memories of exactly one scope that match a filter, given as JSON.

    Those that were saved after `until` do not.
    """

    agent_id: str
    user_id: str | None
    filter: Json
    until: datetime | None = None

    @classmethod
    def from_id(cls, id_: str, until: datetime) -> "Matching":
        """Return what an id stands for."""
        return cls(**json.loads(id_), until=until)

    @property
    def id(self) -> str:
        """The scope and the filter as text."""
        named = {"agent_id": self.agent_id, "user_id": self.user_id, "filter": self.filter}
        return json.dumps(named, sort_keys=True)

    @property
    def subject(self) -> Subject:
        """What is deleted."""
        return Subject.MEMORY

    @property
    def owners(self) -> dict[Subject, str]:
        """The agent and the user that the memories belong to."""
        return {Subject.AGENT: self.agent_id} | ({Subject.USER: self.user_id} if self.user_id else {})

    def scope(self, tenant: str) -> Scope:
        """Return the scope of the memories."""
        return Scope(tenant, self.agent_id, self.user_id)

    def filters(self) -> MemoryFilters:
        """Return the filters of the memories. Raises errors.Invalid for a bad one."""
        expression = parse(self.filter, FIELDS)
        if self.until is not None:
            saved_before = Comparison("created_at", FieldType.TIME, Operator.LTE, (self.until,))
            expression = AllOf((expression, saved_before))
        return MemoryFilters(expression=expression, any_validity=True)

    async def count_rows(self, tx: Transaction) -> int:
        """Return how many memories match."""
        return await matching_queries.count(tx, self.scope(tx.tenant), self.filters())

    async def count(self, tx: Transaction) -> Counter[str]:
        """Return what a deletion would delete now, by names of the receipt."""
        ids = await matching_queries.list_ids(tx, self.scope(tx.tenant), self.filters())
        all_ids = await with_relatives(tx, ids)
        archived_ids = await matching_queries.list_archived(tx, all_ids)
        return _counts(len(all_ids), len(archived_ids))

    async def collect(self, tx: Transaction, limit: int | None = None) -> tuple[Deletion, Counter[str], bool]:
        """Lock at most `limit` matching memories and what goes with them, and return their deletion.

        Return also their numbers, and whether nothing else is left. Tombstones are stored for them.
        """
        scope = self.scope(tx.tenant)
        locked = await _lock(tx, scope, self.filters(), limit)
        await tombstones.add_texts(tx, scope, locked.unsaid_texts())
        rows = Deletion(tx.tenant)
        await deletion.add_memories(tx, rows, [memory.id for memory in locked.to_delete])
        archived = sum(memory.is_archived for memory in locked.to_delete)
        return rows, _counts(len(locked.to_delete), archived), locked.is_complete

    async def erase(self, tx: Transaction, rows: Deletion, erasure_id: str) -> tuple[Counter[str], Removal]:
        """Delete collected memories; return numbers by names of the receipt, and what is left to remove."""
        counts, rest = await deletion.carry_out(tx, rows, erasure_id)
        return erased_rows.receipt_counts(counts), rest


def _counts(memories: int, archived: int) -> Counter[str]:
    return Counter(memories=memories, archived=archived, points=memories)


class _Locked(NamedTuple):
    """Memories that are deleted together, and other live ones of the scope that say the same as one."""

    to_delete: Sequence[LockedMatch]
    live: Sequence[LockedMatch]
    is_complete: bool

    def unsaid_texts(self) -> dict[str, str]:
        """Return the texts that get a tombstone, by memory."""
        unsaid = tombstones.select_unsaid(self.to_delete, self.live)
        return {memory.id: memory.content for memory in unsaid}


async def _lock(tx: Transaction, scope: Scope, filters: MemoryFilters, limit: int | None) -> _Locked:
    """Lock matching memories and all that go with them, in the order of their ids.

    Which ones go with them is known only once they are locked. If it turns out that there are more, the
    locks are given back and all are locked again.
    """
    for _ in range(_MAX_ATTEMPTS):
        async with tx.begin_nested() as savepoint:
            ids = await matching_queries.list_ids(tx, scope, filters, limit)
            relatives = await with_relatives(tx, ids)
            saying_same = await matching_queries.list_saying_same(tx, scope, relatives)
            others = [*(relatives - set(ids)), *saying_same]
            rows = await matching_queries.lock(tx, scope, filters, ids, others)
            matching_ids = [row.id for row in rows if row.matches]
            wanted = await with_relatives(tx, matching_ids)
            if wanted <= {row.id for row in rows}:
                to_delete = [row for row in rows if row.id in wanted]
                live = [row for row in rows if row.id not in wanted and not row.is_archived]
                return _Locked(to_delete, live, is_complete=limit is None or len(ids) < limit)
            await savepoint.rollback()
    raise errors.Busy("others are changing what these memories were made of")
