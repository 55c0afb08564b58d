"""Conversations that a model was shown, and facts that it proposes."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.dreams.verification.fact_check import CheckedFacts, ShownConversation
from shared.dreams.verification.fact_plan import ProposedFact, Relation
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation.roles import Role
from shared.memory.longterm.memory import Memory
from tests.unit.dreams.builders import memory, memory_id
from tests.unit.mining.labelled import turn_of

SAID_AT = datetime(2026, 3, 4, 12, tzinfo=UTC)
Item = dict[str, Any]


def conversation(*lines: str, known: tuple[Memory, ...] = ()) -> ShownConversation:
    roles = {"u": Role.USER, "a": Role.ASSISTANT, "s": Role.SYSTEM}
    turns = [
        turn_of("talk", seq, line[3:], roles[line[0]], SAID_AT) for seq, line in enumerate(lines, start=1)
    ]
    return ShownConversation({(turn.session_id, turn.seq): turn for turn in turns}, {m.id: m for m in known})


def fact(content: str, *seqs: int, **fields: Any) -> ProposedFact:
    values: Item = {"category": None, "tags": (), "importance": None, "occurred_at": None}
    values |= {"relation": Relation.NEW, "of_id": None, "sources": tuple(("talk", seq) for seq in seqs)}
    return ProposedFact(content=content, **(values | fields))


def about(content: str, relation: Relation, number: int = 1) -> ProposedFact:
    return fact(content, 1, relation=relation, of_id=memory_id(number))


def code(checked: CheckedFacts) -> RejectionCode | None:
    return checked.rejections[0].code if checked.rejections else None


LIVES = memory(1, "The user lives in Aarhus.", occurred_at=SAID_AT - timedelta(days=30))
