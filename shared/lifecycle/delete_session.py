"""Delete sessions with everything that belongs to them."""

from collections.abc import Sequence

from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.queries import LockedSession
from shared.foundation.scope import Caller
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.lifecycle import deletion
from shared.lifecycle.deletion import Deletion
from shared.memory.longterm import maintenance_queries
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction


@repeated_after_deadlock
async def delete_session(resources: Resources, caller: Caller, session_id: str) -> None:
    """Delete a session with its turns, observations, state and, if it is of kind `session`, working memory.

    What was promoted from its scratchpad, and was said nowhere else, goes with it, without a tombstone. The
    working memory of a patrol or a subagent stays for the next session of its name.
    Raises errors.NotFound if the caller sees no such session.
    """
    async with resources.transaction(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
        sessions = await session_queries.lock(tx, [session.id])
        promoted = await maintenance_queries.lock_promoted_from(tx, session.scope, session.id)
        await delete_rows(tx, resources, sessions, promoted)


async def delete_rows(
    tx: RecordTransaction,
    resources: Resources,
    sessions: Sequence[LockedSession],
    memory_ids: Sequence[str] = (),
) -> None:
    """Delete locked sessions with their records, and locked memories that come from them alone."""
    # The lock comes before all reads. Otherwise a writer could add a record after them, whose point would
    # stay in the index.
    rows = Deletion(tx.tenant)
    await deletion.add_sessions(tx, rows, sessions)
    await deletion.add_memories(tx, rows, memory_ids)
    await deletion.delete(tx, resources, rows)
