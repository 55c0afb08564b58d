"""Memories that say otherwise than another live one: both stand, and each names the other.

It ends when one of them is archived, closed, deleted or says something else. Triggers of the database see to
that, and to both sides (`migrations/versions/a029_decided_memories.py`), so no statement can forget it.
"""

from typing import NamedTuple

from shared.infra.transaction import Transaction
from shared.memory.longterm import history, queries
from shared.memory.longterm.memory import Memory


class Rivals(NamedTuple):
    """Two memories that contest each other, as they are now."""

    newer: Memory
    older: Memory


async def contest(
    tx: Transaction, newer: Memory, older: Memory, actor: str, reason: str | None = None
) -> Rivals | None:
    """Let two memories of one scope contest each other, and note it in the history of both.

    Return None, and change nothing, if one of them was archived, closed or deleted meanwhile, or if they
    contest each other already.
    """
    locked = {memory.id: memory for memory in await queries.lock(tx, [newer.id, older.id])}
    if len(locked) < len({newer.id, older.id}) or not all(map(_is_open, locked.values())):
        return None
    before = locked[newer.id]
    if older.id in before.contested_with or before.scope != locked[older.id].scope:
        return None
    rivals = [*before.contested_with, older.id]
    values = {"contested_with": rivals, "content_version": before.content_version + 1}
    after = await queries.update_columns(tx, newer.id, values)
    [other] = await queries.read(tx, [older.id])
    pairs = [(before, after), (locked[older.id], other)]
    await history.add_changes(tx, actor, "contested", pairs, reason)
    return Rivals(after, other)


def _is_open(memory: Memory) -> bool:
    return memory.archived_at is None and memory.valid_until is None
