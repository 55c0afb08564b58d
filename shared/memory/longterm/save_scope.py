"""Save the drafts of one scope in the caller's transaction.

A draft without a key and without `valid_until` reinforces what says the same already: the live memory; what
an archived one became; or the one that a caller archived, which is restored. All others are memories of
their own.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.infra.transaction import Transaction
from shared.memory.longterm import (
    history,
    keyed,
    labels,
    new_rows,
    queries,
    reinforce,
    restoring,
    successor_queries,
    tombstones,
)
from shared.memory.longterm.fingerprint import fingerprint_of
from shared.memory.longterm.memory import DecidedBy, Memory, SavedDraft
from shared.memory.longterm.reinforce import Addition
from shared.memory.longterm.successor_queries import SavedBefore

Row = dict[str, Any]


@dataclass(slots=True)
class SavedScope:
    """What was saved in one scope: the memory of each draft, by the position of the draft.

    `changed` are the memories, by id, of a new version, so that they must be indexed.
    """

    by_position: dict[int, Memory] = field(default_factory=dict)
    changed: dict[str, Memory] = field(default_factory=dict)

    def add(self, positions: Collection[int], memory: Memory, version_before: int | None) -> None:
        """Note the memory of these drafts, and that it is to be indexed if it has a new version."""
        for position in positions:
            self.by_position.setdefault(position, memory)
        if memory.version != version_before:
            self.changed[memory.id] = memory


class _Group(NamedTuple):
    """The drafts that become one memory, by their positions, and the row of that memory."""

    positions: list[int]
    row: Row


async def save_scope(
    tx: Transaction, scope: Scope, actor: str, items: Sequence[SavedDraft], *, can_enrich: bool
) -> SavedScope:
    """Save drafts of one scope."""
    saved = SavedScope()
    groups = _group_by_fingerprint(items, can_enrich=can_enrich)
    await _continue_archived(tx, scope, actor, groups, saved, can_enrich=can_enrich)
    remaining = {key: group for key, group in groups.items() if group.positions[0] not in saved.by_position}
    closed = [
        _Group([position], _merged_row([item], can_enrich=can_enrich))
        for position, item in enumerate(items)
        if item.draft.key is None and not item.draft.is_deduplicated
    ]
    if remaining or closed:
        await _upsert(tx, scope, actor, remaining, closed, saved)
    await _save_keyed(tx, scope, actor, items, saved)
    # Afterwards: a deletion that this save has waited for may have left a tombstone just now.
    await tombstones.remove(tx, scope, [item.draft.content for item in items])
    return saved


def _group_by_fingerprint(items: Sequence[SavedDraft], *, can_enrich: bool) -> dict[bytes, _Group]:
    positions: dict[bytes, list[int]] = {}
    for position, item in enumerate(items):
        if item.draft.is_deduplicated:
            positions.setdefault(fingerprint_of(item.draft), []).append(position)
    return {
        fingerprint_: _Group(group, _merged_row([items[i] for i in group], can_enrich=can_enrich))
        for fingerprint_, group in positions.items()
    }


async def _continue_archived(
    tx: Transaction,
    scope: Scope,
    actor: str,
    groups: Mapping[bytes, _Group],
    saved: SavedScope,
    *,
    can_enrich: bool,
) -> None:
    """Reinforce what archived memories with these fingerprints became; the first of each stands for it."""
    if not groups:
        return
    found = await successor_queries.find_saved_before(tx, scope, list(groups))
    ids = sorted({memory_id for before in found.values() for memory_id in before.ids})
    # Locked in one order, so that two batches can't deadlock.
    locked_memories = {memory.id: memory for memory in await queries.lock(tx, ids)}
    for fingerprint_, saved_before in found.items():
        for memory_id in saved_before.ids:
            before = locked_memories.get(memory_id)
            if before is None or not _is_still(before, saved_before):
                continue
            live, reason = before, "its source was saved again"
            if saved_before.is_restorable:
                reason = "its text was saved again"
                live = await restoring.make_live(tx, actor, before, reason, can_enrich=can_enrich)
            memory = await reinforce.reinforce(tx, live, Addition.from_row(groups[fingerprint_].row))
            await history.add(tx, actor, "reinforced", [memory], reason)
            locked_memories[memory_id] = memory
            saved.add(groups[fingerprint_].positions, memory, before.version)


def _is_still(memory: Memory, saved_before: SavedBefore) -> bool:
    """Tell whether a memory, which is locked now, still is what was found before."""
    return memory.archived_at is not None if saved_before.is_restorable else memory.is_deduplicated


async def _upsert(
    tx: Transaction,
    scope: Scope,
    actor: str,
    groups: Mapping[bytes, _Group],
    closed: Sequence[_Group],
    saved: SavedScope,
) -> None:
    """Insert rows, or reinforce the live memories with the same fingerprints."""
    created: list[Memory] = []
    reinforced: list[Memory] = []
    closed_by_id = {group.row["id"]: group for group in closed}
    rows = [group.row for group in (*groups.values(), *closed)]
    for row in await queries.upsert(tx, scope, rows):
        memory = Memory.from_row(row)
        group = closed_by_id.get(memory.id) or groups[bytes(row["fingerprint"])]
        if row["inserted"]:
            created.append(memory)
            saved.add(group.positions, memory, None)
        else:
            reinforced.append(await reinforce.widen(tx, memory, Addition.from_row(group.row)))
            saved.add(group.positions, reinforced[-1], memory.version)
    await history.add(tx, actor, "created", created)
    await history.add(tx, actor, "reinforced", reinforced)


async def _save_keyed(
    tx: Transaction, scope: Scope, actor: str, items: Sequence[SavedDraft], saved: SavedScope
) -> None:
    positions = [position for position, item in enumerate(items) if item.draft.key is not None]
    writes = await keyed.save_keyed(tx, scope, actor, [items[position] for position in positions])
    for position, write in zip(positions, writes, strict=True):
        saved.add([position], write.memory, None)


def _merged_row(items: Sequence[SavedDraft], *, can_enrich: bool) -> Row:
    """Return the row of one memory for drafts of the same content: the most trusted one says it, too."""
    drafts = [item.draft for item in items]
    is_pending = can_enrich and any(draft.enrich for draft in drafts)
    sources = [draft.source.model_dump() for draft in drafts if draft.source]
    tags = tuple(labels.join_tags((), [tag for draft in drafts for tag in draft.tags]))
    return new_rows.row_from_draft(
        drafts[0].model_copy(update={"tags": tags}),
        max((item.origin for item in items), key=attrgetter("trust")),
        MemoryState.PENDING if is_pending else MemoryState.FINAL,
        importance=max(draft.importance for draft in drafts),
        valid_from=reinforce.earliest([draft.valid_from for draft in drafts]),
        expires_at=reinforce.latest([draft.expires_at for draft in drafts]),
        sources=[source for i, source in enumerate(sources) if source not in sources[:i]],
        saved_without_source=any(draft.source is None for draft in drafts),
        reinforcement_count=len(drafts),
        decided_by=DecidedBy.CALLER,
    )
