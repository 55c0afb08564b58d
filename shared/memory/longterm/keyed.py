"""Save memories under keys that their callers chose: a key that is taken is replaced.

A memory with a key is stored as it was written. It is no duplicate of any other, and nothing but a call that
names its key or its id changes it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from shared.foundation import errors, versions
from shared.foundation.scope import Scope
from shared.foundation.versions import ABSENT, Expected
from shared.infra.transaction import Transaction
from shared.memory.longterm import history, key_queries, new_rows
from shared.memory.longterm.memory import DecidedBy, Memory, MemoryDraft, Name, SavedDraft

_MAX_ATTEMPTS = 5
Row = dict[str, Any]


class KeyedWrite(NamedTuple):
    """A memory after a write under its key, and whether the key was free before."""

    memory: Memory
    is_new: bool


async def save_keyed(
    tx: Transaction, scope: Scope, actor: str, items: Sequence[SavedDraft]
) -> list[KeyedWrite]:
    """Save drafts with keys and return the writes in their order; a later draft replaces an earlier one."""
    writes: dict[int, KeyedWrite] = {}
    for positions in _rounds([item.draft for item in items]):
        round_writes = await _save_distinct(tx, scope, actor, [items[i] for i in positions])
        writes |= zip(positions, round_writes, strict=True)
    return [writes[position] for position in range(len(items))]


async def save_if(
    tx: Transaction, scope: Scope, actor: str, item: SavedDraft, expected: Expected | None
) -> KeyedWrite:
    """Save a draft under its key if what is stored there is expected.

    Raise errors.PreconditionFailed otherwise.
    """
    if expected is not None:
        name = _name(item.draft)
        await key_queries.set_aside_expired(tx, scope, [name])
        stored = next(iter(await key_queries.lock(tx, scope, [name])), None)
        versions.check("the memory with this key", stored.version if stored else ABSENT, expected)
    (write,) = await _save_distinct(tx, scope, actor, [item])
    if expected is not None and ABSENT in expected and not write.is_new:
        # Somebody else's save came in between. It is undone with the transaction.
        raise errors.PreconditionFailed(f"memory '{write.memory.id}' has this key already")
    return write


async def free_expired(tx: Transaction, memory: Memory) -> None:
    """Archive the expired memory that has the key of this one, if there is one."""
    if memory.key is not None:
        await key_queries.set_aside_expired(tx, memory.scope, [_name(memory)])


def _name(memory: Memory | MemoryDraft) -> Name:
    return memory.namespace, memory.key or ""


def _rounds(drafts: Sequence[MemoryDraft]) -> list[list[int]]:
    """Return the positions of the drafts in rounds that name no key twice, each key in its order."""
    rounds: list[list[int]] = []
    counts: Counter[Name] = Counter()
    for position, draft in enumerate(drafts):
        number = counts[_name(draft)]
        counts[_name(draft)] += 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(position)
    return rounds


async def _save_distinct(
    tx: Transaction, scope: Scope, actor: str, items: Sequence[SavedDraft]
) -> list[KeyedWrite]:
    """Insert or replace. What another transaction deletes in between is tried again."""
    rows = {_name(item.draft): _row(item) for item in items}
    writes: dict[Name, KeyedWrite] = {}
    await key_queries.set_aside_expired(tx, scope, list(rows))
    for _ in range(_MAX_ATTEMPTS):
        created = await key_queries.insert_missing(tx, scope, _remaining(rows, writes))
        writes |= {_name(memory): KeyedWrite(memory, is_new=True) for memory in created}
        replaced = await _replace_existing(tx, scope, actor, _remaining(rows, writes))
        writes |= {_name(memory): KeyedWrite(memory, is_new=False) for memory in replaced}
        await history.add(tx, actor, "created", created)
        if len(writes) == len(rows):
            return [writes[_name(item.draft)] for item in items]
    raise errors.Busy("others keep writing and deleting under this key")


def _row(item: SavedDraft) -> Row:
    sources = [item.draft.source.model_dump()] if item.draft.source else []
    return new_rows.row_from_draft(
        item.draft,
        item.origin,
        sources=sources,
        saved_without_source=not sources,
        decided_by=DecidedBy.CALLER,
    )


def _remaining(rows: dict[Name, Row], writes: dict[Name, KeyedWrite]) -> list[Row]:
    return [row for name, row in rows.items() if name not in writes]


async def _replace_existing(tx: Transaction, scope: Scope, actor: str, rows: Sequence[Row]) -> list[Memory]:
    by_name = {(row["namespace"], row["key"]): row for row in rows}
    if not by_name:
        return []
    existing = {memory.id: memory for memory in await key_queries.lock(tx, scope, list(by_name))}
    new_values = [by_name[_name(before)] | {"id": before.id} for before in existing.values()]
    replaced = await key_queries.replace(tx, new_values)
    pairs = [(existing[memory.id], memory) for memory in replaced]
    await history.add_changes(tx, actor, "replaced", pairs)
    return replaced
