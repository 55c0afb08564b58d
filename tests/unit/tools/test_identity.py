"""Headers choose an agent and a user within what the key may, never beyond."""

import pytest
from starlette.requests import Request

from services.gateway import tool_identity
from services.gateway.tools.invocation import Identity, identify
from shared.foundation import errors
from shared.foundation.origin import Channel
from shared.foundation.scope import Caller, Right
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner

ALL_RIGHTS: frozenset[Right] = frozenset({"read", "write"})
UNBOUND = Caller("k", "t", ALL_RIGHTS)
OF_AGENT = Caller("k", "t", ALL_RIGHTS, agent_id="inn")
OF_USER = Caller("k", "t", ALL_RIGHTS, user_id="ada")


def test_without_headers_the_key_acts_as_it_is_bound() -> None:
    assert identify(OF_USER, {}) == Identity(OF_USER.via(Channel.TOOL), None)


def test_headers_bind_a_key_further() -> None:
    headers = {"loci-agent": b"inn", "loci-user": "zoë".encode(), "loci-session": b"s-1"}
    identity = identify(UNBOUND, headers)
    assert (identity.caller.agent_id, identity.caller.user_id, identity.session_id) == ("inn", "zoë", "s-1")
    assert not rights.allows(identity.caller, Area.MEMORIES, Action.WRITE, Owner("inn", "bob"))
    assert not rights.allows(identity.caller, Area.MEMORIES, Action.READ, Owner("mill", "zoë"))
    assert rights.allows(identity.caller, Area.MEMORIES, Action.READ, Owner("inn", None))


@pytest.mark.parametrize(
    ("caller", "headers"),
    [
        (OF_AGENT, {"loci-agent": b"mill"}),
        (OF_USER, {"loci-user": b"bob"}),
        (OF_AGENT, {"loci-agent": b"INN"}),
    ],
)
def test_another_agent_or_user_than_that_of_the_key_is_refused(
    caller: Caller, headers: dict[str, bytes]
) -> None:
    with pytest.raises(errors.Forbidden, match="bound to"):
        identify(caller, headers)


def test_what_a_key_is_bound_to_may_be_named() -> None:
    assert identify(OF_AGENT, {"loci-agent": b"inn"}).caller == OF_AGENT.via(Channel.TOOL)
    assert identify(OF_AGENT, {"loci-user": b"ada"}).caller.bindings == {"agent_id": "inn", "user_id": "ada"}


@pytest.mark.parametrize("value", [b"", b" ada", b"\xff", b"a\x00b", b"x" * 129, b".."])
@pytest.mark.parametrize("name", ["loci-agent", "loci-user", "loci-session"])
def test_a_header_that_is_no_id_is_refused_and_an_empty_one_too(name: str, value: bytes) -> None:
    with pytest.raises(errors.Invalid, match=r"(?i)loci-"):
        identify(UNBOUND, {name: value})


@pytest.mark.parametrize("name", ["Loci-Agent", "Loci-User", "Loci-Session"])
def test_a_header_that_chooses_twice_is_refused_even_if_both_say_the_same(name: str) -> None:
    twice = [(name.lower().encode(), b"ada")] * 2
    with pytest.raises(errors.Invalid, match=f"{name}: must be sent once"):
        tool_identity._sent_once(Request({"type": "http", "headers": twice}))
    others = [(b"accept", b"a"), (b"accept", b"b"), twice[0]]
    assert tool_identity._sent_once(Request({"type": "http", "headers": others}))[name.lower()] == b"ada"
