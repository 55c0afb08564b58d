"""DR10: of what a model proposes about skills, only what loses nothing becomes a proposal."""

import json
from typing import Any

import pytest

from shared.dreams.passes import skills
from shared.dreams.passes.recurring_requests import find_recurring, recurring_terms
from shared.dreams.passes.skills import Material, ProposedSkills
from shared.foundation import errors
from tests.unit.context.builders import turn
from tests.unit.skills.sample_skill import skill

BREAD = skill(name="bake-bread", content="Bake at 220 degrees in the Miele oven.")
ROLLS = skill(name="bake-rolls", content="Rolls need 18 minutes.")
SALT = skill(name="no-salt", content="Never add salt to the dough.")
OVENS = skill(name="ovens", content="Kiel bakes at 180 degrees. Bonn bakes at 220 degrees.")
OFFERED = {item.name: item for item in (BREAD, ROLLS, SALT, OVENS)}
SHOWN = "\n".join(item.content for item in OFFERED.values())
ALL = "Bake at 220 degrees in the Miele oven. Rolls need 18 minutes."


def proposed(*items: dict[str, Any], drop: list[str] | None = None) -> ProposedSkills:
    known = {"name": "bake", "summary": "How to bake.", "content": ALL, "replaces": []}
    return skills.parse(json.dumps({"toSave": [known | item for item in items], "toDelete": drop or []}))


def codes(plan: ProposedSkills, taken: tuple[str, ...] = ("bake-bread", "bake-rolls", "fry")) -> list[str]:
    accepted, rejections = skills.check(plan, Material(OFFERED, taken, SHOWN))
    return [item.name for item in accepted] + [str(item.code) for item in rejections]


def test_a_merge_that_keeps_everything_is_accepted() -> None:
    assert codes(proposed({"replaces": ["bake-bread", "bake-rolls"]})) == ["bake"]


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ({"name": "Bake It"}, "malformed"),
        ({"name": "import"}, "malformed"),
        ({"content": " "}, "blank"),
        ({"content": "x" * 64_001}, "too_long"),
        ({"content": "a\x00b"}, "unstorable"),
        ({"replaces": ["fry"]}, "unknown_id"),
        ({"replaces": ["never-shown"]}, "unknown_id"),
        ({"name": "fry"}, "duplicate"),
        ({"name": "bake-bread", "content": BREAD.content}, "unchanged"),
        ({"replaces": ["bake-bread"], "content": "Bake it in the Miele oven."}, "loses_specifics"),
        ({"name": "bake-rolls", "content": "Rolls need some minutes."}, "loses_specifics"),
        ({"replaces": ["bake-bread"], "content": f"{BREAD.content} Ask Grace."}, "adds_specifics"),
        (
            {"replaces": ["bake-bread"], "content": f"{BREAD.content} Wait.", "summary": "As Grace does."},
            "adds_specifics",
        ),
        ({"replaces": ["bake-rolls"], "content": "Rolls never need 18 minutes."}, "changes_negation"),
        ({"replaces": ["no-salt"], "content": "Add salt to the dough."}, "changes_negation"),
        (
            {"replaces": ["ovens"], "content": "Kiel bakes at 220 degrees. Bonn bakes at 180 degrees."},
            "swaps_specifics",
        ),
        ({"name": "bake-anew"}, "no_sources"),
    ],
)
def test_what_loses_or_takes_something_is_refused_with_its_code(item: dict[str, Any], code: str) -> None:
    assert codes(proposed(item)) == [code]


def test_no_skill_is_dropped_without_another_in_its_place() -> None:
    item = {"replaces": ["bake-bread"], "content": f"{BREAD.content} Wait."}
    plan = proposed(item, drop=["bake-bread", "bake-rolls"])
    assert codes(plan) == ["bake", "needs_replacement"]
    nothing = ProposedSkills((), ("bake-bread",))
    assert codes(nothing) == ["needs_replacement"]


def test_a_skill_stands_in_one_item_only() -> None:
    first = {"replaces": ["bake-bread"], "content": f"{BREAD.content} Wait."}
    assert codes(proposed(first, first | {"name": "bake-again"})) == ["bake", "source_taken"]


def test_a_reply_without_a_list_is_no_reply() -> None:
    with pytest.raises(errors.InvalidModelReply):
        skills.parse("I would join the two.")


def test_a_long_summary_is_cut_and_a_missing_one_is_the_beginning_of_the_content() -> None:
    [long] = proposed({"summary": "w " * 30}).plans
    [missing] = proposed({"summary": None}).plans
    assert (len(long.summary.split()), missing.summary) == (15, ALL)


def test_only_what_was_asked_for_in_two_sessions_recurs() -> None:
    requests = [
        turn(1, "Please refund the order of Ada.").model_copy(update={"session_id": "a"}),
        turn(1, "I need to refund an order, how?").model_copy(update={"session_id": "b"}),
        turn(1, "What is the weather in Oslo?").model_copy(update={"session_id": "c"}),
    ]
    [found] = find_recurring(requests)
    assert found.session_ids == ["a", "b"]
    assert {"refund", "order"} <= set(recurring_terms(requests))
    assert find_recurring(requests[1:]) == []


def test_a_better_wording_may_add_a_warning_and_drop_none() -> None:
    better = proposed({"name": "bake-rolls", "content": f"{ROLLS.content} Never leave the oven."})
    worse = proposed({"name": "no-salt", "content": "Add salt to the dough."})
    material = Material(OFFERED, tuple(OFFERED), SHOWN, may_deny=True)
    accepted, _ = skills.check(better, material)
    assert [plan.name for plan in accepted] == ["bake-rolls"]
    assert [item.code for item in skills.check(worse, material)[1]] == ["changes_negation"]
    strict = skills.check(better, Material(OFFERED, tuple(OFFERED), SHOWN))[1]
    assert [item.code for item in strict] == ["changes_negation"]


def test_of_a_prompt_only_what_no_plan_has_taken_is_left() -> None:
    [plan] = proposed({"replaces": ["bake-bread"], "content": f"{BREAD.content} Wait."}).plans
    rest = Material(OFFERED, tuple(OFFERED), SHOWN).without([plan])
    assert sorted(rest.offered) == ["bake-rolls", "no-salt", "ovens"]
    late = proposed({"name": "bake", "replaces": ["bake-rolls"], "content": f"{ROLLS.content} Wait."})
    assert [item.code for item in skills.check(late, rest)[1]] == ["duplicate"]
