"""FG2: an edited turn, a deleted signal or a deleted skill drops what a model made of it."""

from collections.abc import Collection, Sequence
from typing import Any, cast

import pytest

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.feedback.feedback_signal import FeedbackSignal, SignalType
from shared.conversation.sessions import queries as session_queries
from shared.conversation.turns import queries as turn_queries
from shared.dreams.runs import recheck
from shared.dreams.runs.outcome import Outcome
from shared.infra.transaction import Transaction
from shared.memory.longterm import queries as memory_queries
from shared.memory.skills import queries as skill_queries
from tests.unit.context.builders import NOON, turn

NO_TRANSACTION = cast(Transaction, None)


class Stored:
    """What is stored about the records that a model was shown."""

    def __init__(self) -> None:
        self.skills, self.turns, self.signals = {"k": 1}, {"s#1": 1}, {"f"}

    async def lock_all(self, _tx: Transaction, ids: Sequence[str]) -> set[str]:
        """Return all ids: no session or memory was deleted."""
        return set(ids)

    async def lock_skills(self, _tx: Transaction, ids: Collection[str]) -> dict[str, int]:
        """Return the versions of the skills that are stored."""
        return {id_: version for id_, version in self.skills.items() if id_ in ids}

    async def turn_versions(self, _tx: Transaction, ids: Sequence[str]) -> dict[str, int]:
        """Return the versions of the turns that are stored."""
        return {id_: version for id_, version in self.turns.items() if id_ in ids}

    async def signal_ids(self, _tx: Transaction, ids: Sequence[str]) -> set[str]:
        """Return the ids of the signals that are stored."""
        return self.signals & set(ids)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Stored:
    stored = Stored()
    monkeypatch.setattr(session_queries, "lock_existing", stored.lock_all)
    monkeypatch.setattr(memory_queries, "lock_existing", stored.lock_all)
    monkeypatch.setattr(skill_queries, "lock_existing", stored.lock_skills)
    monkeypatch.setattr(turn_queries, "versions", stored.turn_versions)
    monkeypatch.setattr(feedback_queries, "existing_ids", stored.signal_ids)
    return stored


def signal() -> FeedbackSignal:
    fields: dict[str, Any] = {"summary": "No.", "detail": None, "created_at": NOON, "agent_id": "a"}
    return FeedbackSignal(
        id="f", session_id="s", type=SignalType.CORRECTION, user_id=None, tenant="acme", **fields
    )


def outcome() -> Outcome:
    return Outcome(
        proposed=["text"],
        turns=[("s", 1)],
        shown_turns=[turn(1).model_copy(update={"version": 1})],
        shown_signals=[signal()],
        shown_skills={"k": 1},
        reviewed_skills={"k": 1},
    )


async def recheck_of(found: Outcome) -> Outcome:
    return await recheck.without_deleted(NO_TRANSACTION, found)


@pytest.mark.usefixtures("stored")
async def test_an_outcome_stays_as_it_is_if_all_that_was_shown_is_as_it_was() -> None:
    found = outcome()
    assert await recheck_of(found) is found
    without_turns = Outcome(proposed=["text"], shown_signals=[signal()])
    assert await recheck_of(without_turns) is without_turns


@pytest.mark.parametrize(
    ("name", "value"),
    [("turns", {"s#1": 2}), ("turns", {}), ("signals", set()), ("skills", {})],
)
async def test_what_was_edited_or_deleted_leaves_no_text_and_no_turn_read(
    stored: Stored, name: str, value: Any
) -> None:
    setattr(stored, name, value)
    kept = await recheck_of(outcome())
    assert (kept.proposed, kept.turns, kept.shown_turns, kept.shown_signals) == (None, [], [], [])
    assert kept.rejections == [{"code": "forgotten"}]
    assert (kept.shown_skills, kept.reviewed_skills) == (stored.skills, {})
    assert kept.has_more
