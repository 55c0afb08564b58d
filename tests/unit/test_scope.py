"""In which scopes a key may act: its bindings are its defaults and its limits."""

import pytest

from shared.foundation import errors
from shared.foundation.scope import DEFAULT_AGENT, Caller, Right, Scope

ALL_RIGHTS: frozenset[Right] = frozenset({"read", "write", "admin"})
UNBOUND = Caller("k", "t", ALL_RIGHTS)
BOUND_TO_AGENT = Caller("k", "t", ALL_RIGHTS, agent_id="a")
BOUND_TO_USER = Caller("k", "t", ALL_RIGHTS, user_id="u")
BOUND_TO_BOTH = Caller("k", "t", ALL_RIGHTS, agent_id="a", user_id="u")


@pytest.mark.parametrize("value", ["a", "ada@example.org", "Ада", "x" * 128, "a b", "agent:7/b", "日本"])
def test_an_id_may_be_any_printable_text(value: str) -> None:
    assert Scope("t", value, value) == Scope("t", value, value)


@pytest.mark.parametrize(
    "value", ["", " ", " a", "a ", "a\n", "a\x00b", "\ud800", "a\u2028b", "\u200b", "a\x7f"]
)
@pytest.mark.parametrize("field", ["agent_id", "user_id"])
def test_a_blank_or_unprintable_id_is_refused_with_its_field(field: str, value: str) -> None:
    with pytest.raises(errors.Invalid, match=f"^{field}: must be printable"):
        Scope("t", **{field: value})


@pytest.mark.parametrize("field", ["agent_id", "user_id"])
def test_an_id_of_129_characters_is_too_large(field: str) -> None:
    with pytest.raises(errors.TooLarge, match=f"{field}: must be at most 128 characters"):
        Scope("t", **{field: "x" * 129})


def test_an_unbound_key_acts_for_the_default_agent_or_the_named_one() -> None:
    assert UNBOUND.scope(None, None) == Scope("t", DEFAULT_AGENT, None)
    assert UNBOUND.scope("b", "v") == Scope("t", "b", "v")


def test_the_bindings_of_a_key_are_its_defaults() -> None:
    assert BOUND_TO_BOTH.scope(None, None) == Scope("t", "a", "u")
    assert BOUND_TO_BOTH.scope("a", "u") == Scope("t", "a", "u")
    assert BOUND_TO_AGENT.scope(None, "v") == Scope("t", "a", "v")
    assert BOUND_TO_USER.scope("b", None) == Scope("t", "b", "u")


def test_a_bound_key_that_names_another_scope_is_refused_with_its_binding() -> None:
    with pytest.raises(errors.Forbidden, match="bound to agent_id 'a'"):
        BOUND_TO_AGENT.scope("b", None)
    with pytest.raises(errors.Forbidden, match="bound to user_id 'u'"):
        BOUND_TO_USER.scope(None, "v")
    with pytest.raises(errors.Forbidden):
        BOUND_TO_AGENT.scope("A", None)


@pytest.mark.parametrize("right", ["read", "write", "admin"])
def test_a_missing_right_is_named_in_the_error(right: Right) -> None:
    UNBOUND.require_right(right)
    caller = Caller("k", "t", ALL_RIGHTS - {right})
    with pytest.raises(errors.Forbidden, match=f"lacks the right '{right}'"):
        caller.require_right(right)


@pytest.mark.parametrize(
    ("caller", "visible"),
    [
        (UNBOUND, {("a", None), ("a", "u"), ("a", "v"), ("b", None), ("b", "u")}),
        (BOUND_TO_AGENT, {("a", None), ("a", "u"), ("a", "v")}),
        (BOUND_TO_USER, {("a", None), ("a", "u"), ("b", None), ("b", "u")}),
        (BOUND_TO_BOTH, {("a", None), ("a", "u")}),
    ],
)
def test_a_key_sees_common_records_and_those_within_its_bindings(
    caller: Caller, visible: set[tuple[str, str | None]]
) -> None:
    rows = {("a", None), ("a", "u"), ("a", "v"), ("b", None), ("b", "u")}
    assert {row for row in rows if caller.may_see(*row)} == visible
