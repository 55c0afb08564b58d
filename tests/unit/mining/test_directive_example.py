"""The good example of the directive passes the whole chain: its form is right, and it has no sign."""

import re
from datetime import UTC, datetime
from importlib.resources import files

from shared.dreams.passes.fact_statements import statement_of
from shared.dreams.verification import fact_check, fact_plan
from shared.dreams.verification.fact_check import CheckedFacts, ShownConversation
from shared.foundation.roles import Role
from shared.verification.decision import ClosingFate, Decision, Fate, decide_by_signs
from shared.verification.signs import SignFinder
from tests.unit.dreams.builders import memory
from tests.unit.mining.labelled import turn_of

_TURN = re.compile(r'Turn 3 of the session s-1, on\s2026-06-08: "([^"]*)"')
_KNOWN = re.compile(r"\[ID:([0-9a-f]{12})\] (.*?) \(since")


def _example() -> tuple[CheckedFacts, ShownConversation]:
    text = files("shared.platform.directives").joinpath("mine-facts.md").read_text(encoding="utf-8")
    good = text[text.index("\nGood.") : text.index("\nBad.")]
    [said], [(memory_id, content)] = _TURN.findall(good), _KNOWN.findall(good)
    turn = turn_of("s-1", 3, said.replace("\n", " "), Role.USER, datetime(2026, 6, 8, tzinfo=UTC))
    known = memory(1, content, occurred_at=datetime(2025, 11, 2, tzinfo=UTC)).model_copy(
        update={"id": memory_id}
    )
    shown = ShownConversation({("s-1", 3): turn}, {memory_id: known})
    plan = fact_plan.parse(good[good.index("{") :])
    return fact_check.check(plan, shown), shown


def _decisions() -> list[Decision]:
    checked, shown = _example()
    return [decide_by_signs(statement_of(fact, shown), SignFinder()) for fact in checked.facts]


def test_its_form_is_right() -> None:
    checked, _ = _example()
    assert len(checked.facts) == 2
    assert not checked.rejections


def test_each_of_its_facts_is_stored_also_without_a_judge_and_the_earlier_one_is_closed() -> None:
    first, second = _decisions()
    assert (first.fate, first.closing, first.signs) == (Fate.STORED, ClosingFate.CLOSED, ())
    assert (second.fate, second.closing, second.signs) == (Fate.STORED, None, ())
