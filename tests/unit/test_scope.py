"""Who may act for whom: what a key is bound to is its default and its limit."""

import pytest

from shared.foundation import errors
from shared.foundation.scope import DEFAULT_AGENT, Caller, Right, Scope

ALL: frozenset[Right] = frozenset({"read", "write", "admin"})
FREE = Caller("k", "t", ALL)
OF_AGENT = Caller("k", "t", ALL, agent_id="a")
OF_USER = Caller("k", "t", ALL, user_id="u")
OF_BOTH = Caller("k", "t", ALL, agent_id="a", user_id="u")


@pytest.mark.parametrize("account", ["a", "ada@example.org", "Ада", "x" * 128, "a b", "agent:7/b", "日本"])
def test_an_id_may_be_any_printable_text(account: str) -> None:
    assert Scope("t", account, account) == Scope("t", account, account)


@pytest.mark.parametrize(
    "account", ["", " ", " a", "a ", "a\n", "a\x00b", "\ud800", "a\u2028b", "\u200b", "a\x7f"]
)
@pytest.mark.parametrize("field", ["agent_id", "user_id"])
def test_a_blank_or_unprintable_id_is_refused_with_its_field(field: str, account: str) -> None:
    with pytest.raises(errors.Invalid, match=f"^{field}: must be printable"):
        Scope("t", **{field: account})


@pytest.mark.parametrize("field", ["agent_id", "user_id"])
def test_an_id_of_129_characters_is_too_large(field: str) -> None:
    with pytest.raises(errors.TooLarge, match=f"{field}: must be at most 128 characters"):
        Scope("t", **{field: "x" * 129})


def test_an_unbound_key_acts_for_the_default_agent_or_the_named_one() -> None:
    assert FREE.scope(None, None) == Scope("t", DEFAULT_AGENT, None)
    assert FREE.scope("b", "v") == Scope("t", "b", "v")


def test_the_bindings_of_a_key_are_its_defaults() -> None:
    assert OF_BOTH.scope(None, None) == Scope("t", "a", "u")
    assert OF_BOTH.scope("a", "u") == Scope("t", "a", "u")
    assert OF_AGENT.scope(None, "v") == Scope("t", "a", "v")
    assert OF_USER.scope("b", None) == Scope("t", "b", "u")


def test_a_bound_key_that_names_another_scope_is_refused_with_its_binding() -> None:
    with pytest.raises(errors.Forbidden, match="bound to agent_id 'a'"):
        OF_AGENT.scope("b", None)
    with pytest.raises(errors.Forbidden, match="bound to user_id 'u'"):
        OF_USER.scope(None, "v")
    with pytest.raises(errors.Forbidden):
        OF_AGENT.scope("A", None)


@pytest.mark.parametrize("right", ["read", "write", "admin"])
def test_a_missing_right_is_named_in_the_error(right: Right) -> None:
    FREE.require_right(right)
    lacking = Caller("k", "t", ALL - {right})
    with pytest.raises(errors.Forbidden, match=f"lacks the right '{right}'"):
        lacking.require_right(right)


@pytest.mark.parametrize(
    ("caller", "seen"),
    [
        (FREE, {("a", None), ("a", "u"), ("a", "v"), ("b", None), ("b", "u")}),
        (OF_AGENT, {("a", None), ("a", "u"), ("a", "v")}),
        (OF_USER, {("a", None), ("a", "u"), ("b", None), ("b", "u")}),
        (OF_BOTH, {("a", None), ("a", "u")}),
    ],
)
def test_a_key_sees_common_records_and_those_within_its_bindings(
    caller: Caller, seen: set[tuple[str, str | None]]
) -> None:
    rows = {("a", None), ("a", "u"), ("a", "v"), ("b", None), ("b", "u")}
    assert {row for row in rows if caller.may_see(*row)} == seen
