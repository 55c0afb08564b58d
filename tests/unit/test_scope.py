"""The ids of agents and users, and the rights of a key."""

import pytest

from shared.foundation import errors
from shared.foundation.scope import Caller, Right, Scope

ALL_RIGHTS: frozenset[Right] = frozenset({"read", "write", "admin"})
UNBOUND = Caller("k", "t", ALL_RIGHTS)


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


@pytest.mark.parametrize("right", ["read", "write", "admin"])
def test_a_missing_right_is_named_in_the_error(right: Right) -> None:
    UNBOUND.require_right(right)
    caller = Caller("k", "t", ALL_RIGHTS - {right})
    with pytest.raises(errors.Forbidden, match=f"lacks the right '{right}'"):
        caller.require_right(right)
