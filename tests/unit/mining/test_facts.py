"""CV5: what a fact becomes when it is stored, and what of the known memories fits into a prompt."""

import pytest

from shared.dreams.passes import facts
from shared.dreams.verification.fact_check import Fact
from shared.dreams.verification.fact_plan import Relation
from tests.unit.dreams.builders import memory
from tests.unit.mining.conversations import LIVES, SAID_AT, conversation, fact

TALK = conversation("u: We moved to Odense.")
TURNS = tuple(TALK.turns.values())


@pytest.mark.parametrize(
    "category", ["anti-patterns/home", "active-plans/x", "episodic/task", "Episodic", "user-preferences/home"]
)
def test_a_fact_becomes_no_other_kind_of_memory(category: str) -> None:
    proposed = fact("Ada moved to Odense.", 1, category=category, tags=("anti-pattern", "home"))
    draft = facts.to_draft(Fact(proposed, Relation.NEW, None, TURNS))
    assert (draft.category, draft.tags, draft.enrich) == (None, ("home",), False)


def test_a_fact_is_at_most_as_important_as_a_model_may_say() -> None:
    for offered, expected in ((None, 0.5), (0.2, 0.2), (0.7, 0.7), (0.71, 0.7), (1.0, 0.7)):
        proposed = fact("Ada moved to Odense.", 1, importance=offered)
        assert facts.to_draft(Fact(proposed, Relation.NEW, None, TURNS)).importance == expected


def test_a_fact_that_replaces_another_is_valid_from_then_on() -> None:
    proposed = fact("Ada moved to Odense.", 1, category="home")
    new = facts.to_draft(Fact(proposed, Relation.NEW, None, TURNS))
    changed = facts.to_draft(Fact(proposed, Relation.CHANGED, LIVES, TURNS))
    assert (new.valid_from, changed.valid_from) == (None, SAID_AT)
    assert (new.occurred_at, new.importance, new.category) == (SAID_AT, 0.5, "home")


def test_only_facts_are_compared() -> None:
    categories = ["home", None, "active-plans/x", "anti-patterns", "episodic/task"]
    comparable = [facts.is_comparable(memory(1, category=category)) for category in categories]
    assert comparable == [True, True, False, False, False]


def test_known_memories_and_long_turns_fit_into_their_room() -> None:
    memories = [memory(number, "Tea. " * 20) for number in range(10)]
    fitting = facts.fitting_memories(memories, 120)
    assert 0 < len(fitting) < 10
    assert fitting == memories[: len(fitting)]
    shown = conversation("u: " + "tea " * 10_000)
    assert len(facts.render_prompt(shown, 100)) < 500
    assert facts.tokens_of_turn(next(iter(shown.turns.values()))) > 10_000
