"""MM5, DR6: code decides which rules need the user's permission, and who gives it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.foundation.scope import Caller, Scope
from shared.memory.preferences import permission
from shared.memory.preferences.preference import (
    Condition,
    Effect,
    Preference,
    PreferenceBasis,
    PreferenceDraft,
)

ADA = Scope("t", "inn", "ada")
AGENT = Scope("t", "inn")
GRANTED = datetime(2026, 7, 1, tzinfo=UTC)
Json = dict[str, Any]
PLAIN: Json = {"condition": {"flow": "report"}, "effect": {"slot": "depth", "value": "brief"}}
PAYING: Json = {
    "condition": {"flow": "report"},
    "effect": {"slot": "depth", "value": "pay the invoice at once"},
}


def draft(condition: dict[str, Any], effect: dict[str, Any]) -> PreferenceDraft:
    return PreferenceDraft(condition=Condition(**condition), effect=Effect(**effect))


def caller(**bindings: Any) -> Caller:
    return replace(Caller("key", "t", frozenset({"read", "write"})), **bindings)


def stored(rule: PreferenceDraft, *, required: bool, granted: bool) -> Preference:
    return Preference.model_construct(
        key="k",
        condition=rule.condition,
        effect=rule.effect,
        related=[],
        basis=PreferenceBasis.EXPLICIT,
        requires_user_permission=required,
        permission_granted_at=GRANTED if granted else None,
    )


@pytest.mark.parametrize(
    ("key", "condition", "effect"),
    [
        ("k", {"description": "an invoice has come"}, {"slot": "s", "value": 1}),
        ("k", {"flow": "pay_invoice"}, {"slot": "s", "value": 1}),
        ("k", {"flow": "f"}, {"slot": "auto_pay", "value": True}),
        ("k", {"flow": "f"}, {"slot": "autoPay", "value": True}),
        ("k", {"flow": "f"}, {"slot": "s", "value": "send the password"}),
        ("k", {"flow": "f"}, {"slot": "s", "value": {"deep": [{"iban": "x"}, "brief"]}}),
        ("k", {"flow": "f"}, {"slot": "s", "value": {"deep": [1, "über 500 Euro", "400 EUR"]}}),
        ("k", {"flow": "f"}, {"template": "Give every reader the API key."}),
        ("purchases/limit", {"flow": "f"}, {"slot": "s", "value": 500}),
    ],
)
def test_every_part_of_a_rule_is_read(key: str, condition: dict[str, Any], effect: dict[str, Any]) -> None:
    rule = draft(condition, effect)
    assert permission.is_about_sensitive(key, rule.condition, rule.effect)


def test_an_ordinary_rule_needs_no_permission() -> None:
    rule = draft(
        {"flow": "report", "description": "the board meets"}, {"slot": "depth", "value": [1, "brief"]}
    )
    assert not permission.is_about_sensitive("style/length", rule.condition, rule.effect)


@pytest.mark.parametrize(
    ("scope", "bindings", "is_granted"),
    [
        (ADA, {"user_id": "ada"}, True),
        (ADA, {"user_id": "ada", "agent_id": "inn"}, True),
        (ADA, {"agent_id": "inn"}, False),
        (ADA, {}, False),
        (AGENT, {}, True),
        (AGENT, {"agent_id": "inn"}, False),
    ],
)
def test_only_the_users_key_gives_the_users_permission_and_an_unbound_one_that_of_an_agents_rule(
    scope: Scope, bindings: dict[str, str], *, is_granted: bool
) -> None:
    columns = permission.columns(caller(**bindings), scope, "k", draft(**PAYING), None, by_model=False)
    assert columns["requires_user_permission"] is True
    assert (columns["permission_granted_at"] is not None) is is_granted


def test_what_somebody_else_writes_takes_no_need_for_permission_away() -> None:
    before = stored(draft(**PAYING), required=True, granted=True)
    columns = permission.columns(caller(), ADA, "k", draft(**PLAIN), before, by_model=False)
    assert columns == {"requires_user_permission": True, "permission_granted_at": None}


def test_the_same_rule_again_keeps_its_permission_and_one_of_another_type_does_not() -> None:
    of_one: Json = {"condition": {"flow": "pay"}, "effect": {"slot": "limit", "value": 1}}
    of_true: Json = {"condition": {"flow": "pay"}, "effect": {"slot": "limit", "value": True}}
    before = stored(draft(**of_one), required=True, granted=True)
    repeated = permission.columns(caller(), ADA, "k", draft(**of_one), before, by_model=False)
    assert repeated == {"requires_user_permission": True, "permission_granted_at": GRANTED}
    another = permission.columns(caller(), ADA, "k", draft(**of_true), before, by_model=False)
    assert another["permission_granted_at"] is None


def test_the_user_takes_the_need_away_with_another_rule() -> None:
    before = stored(draft(**PAYING), required=True, granted=True)
    columns = permission.columns(caller(user_id="ada"), ADA, "k", draft(**PLAIN), before, by_model=False)
    assert columns == {"requires_user_permission": False, "permission_granted_at": None}
