"""Facts as statements to decide about: what of the conversation is their evidence, and what explains it."""

from collections.abc import Iterable, Sequence
from datetime import UTC

from shared.conversation.turns.turn import Turn
from shared.dreams.verification.fact_check import Fact, ShownConversation
from shared.dreams.verification.fact_plan import Relation
from shared.foundation.roles import Role
from shared.memory.longterm.safety import is_safety_matter
from shared.verification.claim import Evidence
from shared.verification.decision import Earlier, Statement

TURNS_BEFORE = 4
"""Turns before the first source that a judge reads: whom "he" means was often said there."""
_MAX_CHARACTERS = 2000
"""Characters of a turn that a judge reads."""


def statement_of(fact: Fact, shown: ShownConversation) -> Statement:
    """Return a fact as a statement."""
    sources = _in_order(fact.sources)
    earlier = fact.of if fact.relation is Relation.CHANGED else None
    sessions = {turn.session_id for turn in sources}
    until = {turn.session_id: turn.seq for turn in sources}
    context = [
        turn.content
        for turn in _in_order(shown.turns.values())
        if turn.role is Role.USER and turn.session_id in sessions and turn.seq <= until[turn.session_id]
    ]
    return Statement(
        fact.proposed.content,
        [evidence_of(turn, fact.proposed.quotes) for turn in sources],
        [evidence_of(turn, fact.proposed.quotes) for turn in _read_by_judge(sources, shown)],
        context,
        None if earlier is None else Earlier(earlier.content, is_safety_matter(earlier)),
    )


def _in_order(turns: Iterable[Turn]) -> list[Turn]:
    return sorted(turns, key=lambda turn: (turn.session_id, turn.seq))


def _read_by_judge(sources: Sequence[Turn], shown: ShownConversation) -> list[Turn]:
    """Return the sources with the turns before the first of each session, and those between."""
    turns: dict[tuple[str, int], Turn] = {}
    for session_id in dict.fromkeys(turn.session_id for turn in sources):
        seqs = [turn.seq for turn in sources if turn.session_id == session_id]
        of_session = [turn for turn in _in_order(shown.turns.values()) if turn.session_id == session_id]
        before = [turn for turn in of_session if turn.seq < seqs[0]][-TURNS_BEFORE:]
        near = range(seqs[0], min(seqs[-1], seqs[0] + TURNS_BEFORE) + 1)
        between = [turn for turn in of_session if turn.seq in seqs or turn.seq in near]
        turns |= {(turn.session_id, turn.seq): turn for turn in [*before, *between]}
    return list(turns.values())


def evidence_of(turn: Turn, quotes: Sequence[str] = ()) -> Evidence:
    """Return a turn as evidence; of a long one the part around the first quote, or the beginning."""
    day = turn.created_at.astimezone(UTC).date().isoformat()
    speaker = turn.role if turn.role is not Role.USER else turn.speaker or Role.USER
    positions = [turn.content.find(quote) for quote in quotes]
    start = max(0, next((position for position in positions if position >= 0), 0) - _MAX_CHARACTERS // 2)
    return Evidence(speaker, day, turn.content[start : start + _MAX_CHARACTERS])
