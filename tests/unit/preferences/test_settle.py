"""MM3, MM4: which preference prevails, and what is said about the others."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.memory.preferences.preference import Condition, Effect, Preference, PreferenceBasis
from shared.memory.preferences.settle import Match, settle

NOW = datetime(2026, 7, 1, tzinfo=UTC)
FLOW, SITUATION = {"flow": "report"}, {"description": "a board meets"}


def match(
    key: str,
    value: Any = None,
    *,
    template: str | None = None,
    condition: dict[str, str] = FLOW,
    links: int = 0,
    age_days: int = 0,
    user_id: str | None = "ada",
    basis: PreferenceBasis = PreferenceBasis.EXPLICIT,
    is_met_whole: bool = True,
) -> Match:
    preference = Preference.model_construct(
        key=key,
        condition=Condition(**condition),
        effect=Effect(slot=None if value is None else "depth", value=value, template=template),
        related=[],
        user_id=user_id,
        basis=basis,
        updated_at=None if basis is PreferenceBasis.DOMAIN else NOW - timedelta(days=age_days),
    )
    return Match(preference, f"why {key}", links, is_met_whole)


def applied(*matches: Match) -> dict[str, Any]:
    return {item.key: item.to_json()["effect"] for item in settle(matches)[0]}


@pytest.mark.parametrize(
    ("prevails", "gives_way", "because"),
    [
        (match("a", 1, condition=FLOW | SITUATION, age_days=9), match("b", 2), "a flow with a description"),
        (match("a", 1, age_days=9), match("b", 2, condition=SITUATION), "a flow before a description"),
        (
            match("a", 1, condition=SITUATION, age_days=9),
            match("b", 2, condition=FLOW | SITUATION, links=1),
            "a condition that is met",
        ),
        (match("a", 1, links=1, age_days=9), match("b", 2, links=2), "a nearer relation"),
        (match("a", 1, age_days=9), match("b", 2, user_id=None), "a user's own"),
        (match("b", 1), match("a", 2, age_days=1), "the later one"),
        (match("a", 1, links=2), match("b", 2, basis=PreferenceBasis.DOMAIN), "what is stored"),
        (
            match("a", 1, links=2, user_id=None, basis=PreferenceBasis.DOMAIN),
            match("b", 2, condition=FLOW | SITUATION, is_met_whole=False),
            "was not asked about",
        ),
        (match("a", 1), match("b", 2), "the first by key"),
    ],
)
def test_the_more_specific_one_prevails_then_the_later_one_and_the_reason_is_said(
    prevails: Match, gives_way: Match, because: str
) -> None:
    for matches in ([prevails, gives_way], [gives_way, prevails]):
        found, [conflict] = settle(matches)
        assert [item.key for item in found] == [prevails.preference.key]
        assert (conflict.slot, conflict.prevails) == ("depth", prevails.preference.key)
        [overruled] = conflict.overruled
        assert (overruled.key, overruled.effect.value) == (gives_way.preference.key, 2)
        assert because in overruled.because


def test_preferences_that_agree_or_change_different_things_all_apply() -> None:
    matches = [match("a", 1), match("b", 1), match("c", template="Be brief.")]
    found, conflicts = settle(matches)
    assert [item.key for item in found] == ["a", "b", "c"]
    assert conflicts == []
    assert found[0].because == "why a"


def test_a_preference_applies_with_the_part_that_prevails() -> None:
    """Two parts are two decisions: its slot gives way, its template does not."""
    both = match("both", 1, template="Be brief.", age_days=1)
    assert applied(match("later", 2), both) == {
        "later": {"slot": "depth", "value": 2},
        "both": {"template": "Be brief."},
    }
    assert applied(match("later", template="Be long."), both) == {
        "later": {"template": "Be long."},
        "both": {"slot": "depth", "value": 1},
    }


def test_all_that_give_way_are_reported_once() -> None:
    found, [conflict] = settle([match(key, place) for place, key in enumerate("abc", 1)])
    assert [item.key for item in found] == ["a"]
    assert [item.key for item in conflict.overruled] == ["b", "c"]


@pytest.mark.parametrize(
    ("value", "other"), [(1, True), (1, 1.0), (0, False), ([1], [True]), ({"a": 1}, {"a": 1.0})]
)
def test_values_of_different_json_types_contradict_each_other(value: Any, other: Any) -> None:
    """For Python they are equal."""
    applies, [conflict] = settle([match("a", value), match("b", other, age_days=1)])
    assert [(item.key, item.effect.value) for item in applies] == [("a", value)]
    assert [(item.key, item.effect.value) for item in conflict.overruled] == [("b", other)]
    assert type(applies[0].effect.value) is type(value)


def test_objects_that_differ_in_the_order_of_their_keys_say_the_same() -> None:
    applies, conflicts = settle([match("a", {"x": 1, "y": 2}), match("b", {"y": 2, "x": 1}, age_days=1)])
    assert ([item.key for item in applies], conflicts) == (["a", "b"], [])
