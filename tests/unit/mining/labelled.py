"""The labelled conversations of `examples/mining`: what is a fact in them, and what is none."""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

from services.commands import mining_evaluation
from shared.conversation.turns.turn import Turn
from shared.dreams.verification.fact_plan import ProposedFact, Relation
from shared.foundation.roles import Role

Json = dict[str, Any]


@cache
def conversations() -> tuple[Json, ...]:
    """Return the labelled conversations."""
    return tuple(mining_evaluation.read_lines(mining_evaluation.EXAMPLE))


def labelled_facts() -> Iterator[tuple[Json, Json]]:
    """Yield each fact with its conversation."""
    for conversation in conversations():
        for fact in conversation["facts"]:
            yield conversation, fact


def turn_of(session_id: str, seq: int, content: str, role: Role, at: datetime) -> Turn:
    """Return a turn."""
    return Turn(
        session_id=session_id, seq=seq, role=role, speaker=None, content=content, created_at=at, metadata={}
    )


def proposed(conversation: Json, fact: Json) -> ProposedFact:
    """Return a labelled fact as a model would propose it."""
    return ProposedFact(
        content=fact["content"],
        category=None,
        tags=(),
        importance=None,
        occurred_at=None,
        relation=Relation(fact.get("relation", "new")),
        of_id=fact.get("of"),
        sources=tuple((conversation["id"], seq) for seq in fact["sources"]),
    )
