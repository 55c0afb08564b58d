"""The preference that stands beside the memory of an inferred wish, and goes with it.

It sets the slot that the wish is about to the wish in words, in situations like it. Under the key of an
explicit preference nothing is inferred, because the keys of inferred ones begin with a word of their own.
"""

from shared.foundation.origin import Origin
from shared.memory.longterm.labels import INFERRED, requires_permission
from shared.memory.longterm.memory import Memory
from shared.memory.preferences import write
from shared.memory.preferences.preference import MAX_NAME, PreferenceBasis
from shared.memory.preferences.write import LearntPreference
from shared.records.transaction import RecordTransaction


async def add(tx: RecordTransaction, memory: Memory, slot: str) -> None:
    """Add the preference of a memory that was inserted in this transaction."""
    learnt = LearntPreference(
        key=f"{INFERRED}/{slot}"[:MAX_NAME],
        slot=slot,
        text=memory.content,
        memory_id=memory.id,
        basis=PreferenceBasis.DREAM,
        origin=Origin.derived([memory.origin.trust]),
        requires_user_permission=requires_permission(memory.metadata),
    )
    await write.add_learnt(tx, memory.scope, [learnt])
