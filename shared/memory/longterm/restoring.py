"""Make archived memories live again."""

from typing import Any

from shared.foundation.stages import MemoryState
from shared.infra.transaction import Transaction
from shared.memory.longterm import history, history_queries, queries
from shared.memory.longterm.memory import Archiver, Memory


async def make_live(
    tx: Transaction, actor: str, memory: Memory, reason: str | None, *, can_enrich: bool
) -> Memory:
    """Make a locked archived memory live in the state that it had before, as a new version.

    Raises IntegrityError if a live memory has its text or its key.
    """
    state = await _state_before(tx, memory, can_enrich=can_enrich)
    live = await queries.update_columns(tx, memory.id, live_columns(memory, state))
    await history.add_change(tx, actor, "restored", memory, live, reason)
    return live


async def _state_before(tx: Transaction, memory: Memory, *, can_enrich: bool) -> MemoryState:
    if memory.archived_by is Archiver.ENRICHMENT:
        return MemoryState.KEPT_RAW  # it was replaced by what was made of it, and is not to be once more
    state = await history_queries.find_state_before_archive(tx, memory.id)
    return MemoryState.FINAL if state is MemoryState.PENDING and not can_enrich else state


def live_columns(memory: Memory, state: str) -> dict[str, Any]:
    """Return the columns of an archived memory once it is live again, in this state."""
    return {
        "state": state,
        "archived_at": None,
        "archive_reason": None,
        "archived_by": None,
        # Of a live memory only a closed one has successors: those that its caller named.
        "superseded_by": memory.superseded_by if memory.valid_until else [],
        "version": memory.version + 1,
    }
