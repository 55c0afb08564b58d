"""Drop from the outcome of a pass what comes from records that were deleted while the model was asked.

A pass says which memories and sessions it was shown. In the transaction that applies its outcome they are
locked against deletion. If one is gone, nobody can tell which words of the reply come from it: proposals
and rejections are not kept, and nothing that was learnt from turns is applied. A merge is kept if its own
sources are still there, because its text was checked against them.
"""

from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions import queries as session_queries
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import Outcome
from shared.memory.longterm import queries as memory_queries


async def without_deleted(connection: AsyncConnection, run: Run, outcome: Outcome) -> Outcome:
    """Return the outcome without what comes from deleted records; the others stay locked until the end."""
    sessions = sorted(outcome.shown_sessions)
    memories = sorted(outcome.shown_memories)
    existing_sessions = await session_queries.lock_existing(connection, run.tenant, sessions)
    existing_memories = await memory_queries.lock_existing(connection, run.tenant, memories)
    if len(existing_sessions) == len(sessions) and len(existing_memories) == len(memories):
        return outcome
    kept = replace(
        outcome,
        inputs={},
        proposed=None,
        rejections=[{"code": "forgotten"}, *({"code": item["code"]} for item in outcome.rejections)],
        reviewed={id_: version for id_, version in outcome.reviewed.items() if id_ in existing_memories},
        shown_sessions=existing_sessions,
        shown_memories=existing_memories,
        has_more=True,
    )
    return _without_what_turns_taught(kept) if outcome.turns else kept


def _without_what_turns_taught(outcome: Outcome) -> Outcome:
    """Leave the turns unread, so that a later run reads those that are left."""
    return replace(outcome, creations=[], turns=[], read_signal_ids=[], occurrences=[], inferred_keys=[])
