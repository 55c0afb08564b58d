"""What is stored by now about the memories that a pass wants to change.

They may have changed while the model was asked. They are locked, and compared with what the pass read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.dreams.runs import undone_change_queries
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import NewMemory, Outcome
from shared.dreams.runs.undone_change_queries import UndoneChanges
from shared.infra.transaction import Transaction
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm import scope_queries, tombstones
from shared.memory.longterm.memory import Memory


@dataclass(frozen=True, slots=True)
class Present:
    """What is stored now about what a pass wants to change: its sources, locked, and what was refused."""

    memories: dict[str, Memory]
    deleted_texts: set[str]
    undone: UndoneChanges
    # The live memory that has a text already, by fingerprint.
    ids_by_fingerprint: dict[bytes, str]

    def is_unchanged(self, memory: Memory) -> bool:
        """Tell whether a memory is still what the pass read, and this pass has not archived it yet."""
        locked_memory = self.memories.get(memory.id)
        return (
            locked_memory is not None
            and locked_memory.version == memory.version
            and locked_memory.archived_at is None
        )

    def id_with_text_of(self, creation: NewMemory) -> str | None:
        """Return the memory that has the text of a creation before it is applied, or None."""
        return self.ids_by_fingerprint.get(_fingerprint(creation))


async def read_present(tx: Transaction, run: Run, outcome: Outcome) -> Present:
    """Lock the memories that an outcome is about, and return what is stored about them."""
    fingerprints = [_fingerprint(creation) for creation in outcome.creations]
    ids_by_fingerprint = await scope_queries.ids_by_fingerprint(tx, run.scope, fingerprints)
    ids = {memory.id for creation in outcome.creations for memory in creation.sources}
    ids |= {removal.memory.id for removal in outcome.removals} | set(ids_by_fingerprint.values())
    ids |= {reinforcement.memory.id for reinforcement in outcome.reinforcements}
    ids |= {closing.memory.id for closing in outcome.closings}
    ids |= {rivalry.memory.id for rivalry in outcome.contests}
    memories = await memory_queries.lock(tx, sorted(ids))
    return Present(
        memories={memory.id: memory for memory in memories},
        deleted_texts=await _find_deleted_texts(tx, run, outcome.creations),
        undone=await undone_change_queries.find(tx, ids),
        ids_by_fingerprint=ids_by_fingerprint,
    )


def _fingerprint(creation: NewMemory) -> bytes:
    return bytes.fromhex(creation.row["fingerprint"].removeprefix("\\x"))


async def _find_deleted_texts(tx: Transaction, run: Run, creations: Sequence[NewMemory]) -> set[str]:
    contents = [creation.row["content"] for creation in creations]
    return await tombstones.find_deleted(tx, run.scope, contents) if contents else set()
