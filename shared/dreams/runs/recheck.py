"""Drop from the outcome of a pass what comes from records that were deleted while the model was asked.

A pass says which memories, sessions, turns and signals it was shown. In the transaction that applies its
outcome they are locked against deletion. If one is gone, or a turn was edited, nobody can tell which words
of the reply come from it: proposals and rejections are not kept, and nothing that was learnt from turns is
applied. A merge is kept if its own sources are still there, because its text was checked against them.
"""

from collections.abc import Sequence
from dataclasses import replace

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.sessions import queries as session_queries
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.runs.outcome import Outcome
from shared.infra.transaction import Transaction
from shared.memory.longterm import queries as memory_queries
from shared.memory.skills import queries as skill_queries


async def without_deleted(tx: Transaction, outcome: Outcome) -> Outcome:
    """Return the outcome without what comes from deleted records; the others stay locked until the end."""
    sessions = sorted(outcome.shown_sessions)
    memories = sorted(outcome.shown_memories)
    existing_sessions = await session_queries.lock_existing(tx, sessions)
    existing_memories = await memory_queries.lock_existing(tx, memories)
    existing_skills = await skill_queries.lock_existing(tx, outcome.shown_skills)
    is_complete = (
        len(existing_sessions) == len(sessions)
        and len(existing_memories) == len(memories)
        and existing_skills.keys() == outcome.shown_skills.keys()
    )
    # The lock on their sessions keeps turns and signals as they are.
    turns_are_unchanged = await are_unchanged(tx, outcome.shown_turns)
    if is_complete and turns_are_unchanged and await _signals_exist(tx, outcome):
        return outcome
    kept = replace(
        outcome,
        inputs={},
        proposed=None,
        rejections=[{"code": "forgotten"}, *({"code": item["code"]} for item in outcome.rejections)],
        reviewed={id_: version for id_, version in outcome.reviewed.items() if id_ in existing_memories},
        skill_proposals=[],
        reviewed_skills={},
        shown_skills=existing_skills,
        shown_sessions=existing_sessions,
        shown_memories=existing_memories,
        has_more=True,
    )
    kept = replace(kept, shown_turns=[], shown_signals=[], graph=None, held=[])
    return _without_what_turns_taught(kept) if outcome.turns else kept


async def are_unchanged(tx: Transaction, turns: Sequence[Turn]) -> bool:
    """Tell whether turns, whose sessions are locked, are still the versions that a model was shown."""
    versions = {turn.record_id: turn.version for turn in turns}
    return not versions or await turn_queries.versions(tx, sorted(versions)) == versions


async def _signals_exist(tx: Transaction, outcome: Outcome) -> bool:
    signal_ids = {signal.id for signal in outcome.shown_signals}
    if not signal_ids:
        return True
    return await feedback_queries.existing_ids(tx, sorted(signal_ids)) == signal_ids


def _without_what_turns_taught(outcome: Outcome) -> Outcome:
    """Leave the turns unread, so that a later run reads those that are left."""
    without_changes = replace(outcome, creations=[], reinforcements=[], closings=[], contests=[])
    return replace(without_changes, turns=[], read_signal_ids=[], occurrences=[], inferred_keys=[])
