"""The order of trust, and what lowers it."""

import pytest

from shared.foundation import errors
from shared.foundation.origin import Channel, Origin, Trust, least, trust_of_role
from shared.foundation.roles import Role
from shared.foundation.scope import Caller

RISING = [Trust.OUTSIDE, Trust.USER, Trust.AGENT, Trust.OPERATOR]


def test_trusts_are_ordered_by_rank_and_not_by_their_letters() -> None:
    assert sorted([Trust.AGENT, Trust.OPERATOR, Trust.USER, Trust.OUTSIDE]) == RISING
    assert max(RISING) is Trust.OPERATOR
    assert [first > second for first in RISING for second in RISING] == [
        first > second for first in range(4) for second in range(4)
    ]
    assert [first <= second for first in RISING for second in RISING] == [
        first <= second for first in range(4) for second in range(4)
    ]
    assert Trust.AGENT >= Trust.USER


def test_the_least_of_nothing_is_outside() -> None:
    assert least([]) is Trust.OUTSIDE
    assert least([Trust.AGENT, Trust.USER, Trust.OPERATOR]) is Trust.USER


@pytest.mark.parametrize("requested", RISING)
def test_a_caller_lowers_and_never_raises(requested: Trust) -> None:
    origin = Origin(channel=Channel.API, trust=Trust.AGENT, key_id="k")
    if requested is Trust.OPERATOR:
        with pytest.raises(errors.Invalid, match="lowered"):
            origin.lowered(requested)
    else:
        assert origin.lowered(requested) == Origin(channel=Channel.API, trust=requested, key_id="k")
    assert origin.lowered(None) == origin


@pytest.mark.parametrize("role", list(Role))
def test_only_the_system_speaks_with_the_trust_of_the_key(role: Role) -> None:
    expected = {Role.USER: Trust.USER, Role.SYSTEM: Trust.OPERATOR}
    assert trust_of_role(role, Trust.OPERATOR) is expected.get(role, Trust.OUTSIDE)


def test_what_is_imported_is_trusted_at_most_as_its_importer() -> None:
    importer = Caller("k", "t", frozenset({"write"})).origin
    for trust in RISING:
        imported = Origin(channel=Channel.MODEL, trust=trust, key_id="other").imported(importer)
        assert imported == Origin(channel=Channel.MODEL, trust=min(trust, Trust.AGENT), key_id="k")


def test_answers_do_not_name_the_key() -> None:
    assert Origin(key_id="k").model_dump(mode="json") == {"channel": "api", "trust": "outside"}
