"""Whose records a key may read and write. The expectations restate the rules, not the table of the code."""

import pytest

from shared.foundation import errors
from shared.foundation.scope import DEFAULT_AGENT, Caller, Right, Scope
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner

ALL_RIGHTS: frozenset[Right] = frozenset({"read", "write", "admin"})
UNBOUND = Caller("k", "t", ALL_RIGHTS)
TO_AGENT = Caller("k", "t", ALL_RIGHTS, agent_id="a")
TO_USER = Caller("k", "t", ALL_RIGHTS, user_id="u")
TO_BOTH = Caller("k", "t", ALL_RIGHTS, agent_id="a", user_id="u")
TO_NAMESPACE = Caller("k", "t", ALL_RIGHTS, namespace="patrol/P")
TO_AGENT_AND_NAMESPACE = Caller("k", "t", ALL_RIGHTS, agent_id="a", namespace="patrol/P")
BOUND = [TO_AGENT, TO_USER, TO_BOTH, TO_NAMESPACE, TO_AGENT_AND_NAMESPACE]
OWNERS = {("a", None), ("a", "u"), ("a", "v"), ("b", None), ("b", "u")}
Owners = set[tuple[str, str | None]]


def _reached(caller: Caller, area: Area, action: Action) -> Owners:
    return {owner for owner in OWNERS if rights.allows(caller, area, action, Owner(*owner))}


def test_an_unbound_key_acts_for_the_default_agent_or_the_named_one() -> None:
    for area in Area:
        assert rights.scope(UNBOUND, area, Action.WRITE) == Scope("t", DEFAULT_AGENT, None)
        assert rights.scope(UNBOUND, area, Action.WRITE, "b", "v") == Scope("t", "b", "v")


def test_the_bindings_of_a_key_are_its_defaults() -> None:
    assert rights.scope(TO_BOTH, Area.MEMORIES, Action.READ) == Scope("t", "a", "u")
    assert rights.scope(TO_BOTH, Area.MEMORIES, Action.READ, "a", "u") == Scope("t", "a", "u")
    assert rights.scope(TO_AGENT, Area.MEMORIES, Action.READ, None, "v") == Scope("t", "a", "v")
    assert rights.scope(TO_USER, Area.MEMORIES, Action.READ, "b") == Scope("t", "b", "u")


def test_a_bound_key_that_names_another_scope_is_refused_with_its_binding() -> None:
    with pytest.raises(errors.Forbidden, match="bound to agent_id 'a'"):
        rights.scope(TO_AGENT, Area.MEMORIES, Action.READ, "b")
    with pytest.raises(errors.Forbidden, match="bound to user_id 'u'"):
        rights.scope(TO_USER, Area.MEMORIES, Action.READ, None, "v")
    with pytest.raises(errors.Forbidden):
        rights.scope(TO_AGENT, Area.MEMORIES, Action.READ, "A")


# What each binding allows with a record that is its own, common, or another's: `r` to read, `w` to write.
_CELLS = {
    #                                agent              user               namespace
    Area.MEMORIES:                (("rw", "", ""),    ("rw", "r", ""),   ("", "")),
    Area.SESSIONS:                (("rw", "", ""),    ("rw", "", ""),    ("", "")),
    Area.DREAMS:                  (("rw", "", ""),    ("rw", "", ""),    ("", "")),
    Area.SCRATCH_STORES:          (("rw", "", ""),    ("rw", "", ""),    ("", "")),
    Area.SESSION_WORKING_MEMORY:  (("rw", "", ""),    ("rw", "", ""),    ("rw", "r")),
    Area.WORKING_MEMORY:          (("rw", "r", ""),   ("rw", "r", ""),   ("rw", "r")),
    Area.AGENTS:                  (("rw", "", ""),    ("", "", ""),      ("", "")),
    Area.AGENT_BUDGETS:           (("r", "", ""),     ("", "", ""),      ("", "")),
    Area.SPEND:                   (("r", "", ""),     ("r", "", ""),     ("", "")),
    Area.USERS:                   (("", "", ""),      ("w", "", ""),     ("", "")),
    Area.TENANT:                  (("r", "r", "r"),   ("r", "r", "r"),   ("", "")),
}  # fmt: skip
# Records that are a key's own, common, and another's; to a namespace nothing is common.
_SEEN_BY = (
    (TO_AGENT, (Owner("a", "u"), Owner(None, "u"), Owner("b", "u"))),
    (TO_USER, (Owner("a", "u"), Owner("a", None), Owner("a", "v"))),
    (TO_NAMESPACE, (Owner("b", "v", "patrol/p"), Owner("b", "v", "patrol/q"))),
)


@pytest.mark.parametrize("area", Area)
@pytest.mark.parametrize("action", Action)
def test_each_binding_allows_what_the_table_says_and_nothing_else(area: Area, action: Action) -> None:
    for (caller, owners), cells in zip(_SEEN_BY, _CELLS[area], strict=True):
        allowed = [action[0] in cell for cell in cells]
        assert [rights.allows(caller, area, action, owner) for owner in owners] == allowed
        if any(allowed):
            rights.require_area(caller, area, action)
        else:
            with pytest.raises(errors.Forbidden):
                rights.require_area(caller, area, action)


@pytest.mark.parametrize("area", Area)
@pytest.mark.parametrize("action", Action)
def test_an_unbound_key_reaches_the_whole_tenant(area: Area, action: Action) -> None:
    assert _reached(UNBOUND, area, action) == OWNERS


@pytest.mark.parametrize("area", [Area.MEMORIES, Area.SESSIONS, Area.DREAMS, Area.SESSION_WORKING_MEMORY])
@pytest.mark.parametrize("action", Action)
def test_a_key_bound_to_an_agent_reaches_what_is_the_agents(area: Area, action: Action) -> None:
    assert _reached(TO_AGENT, area, action) == {("a", None), ("a", "u"), ("a", "v")}


@pytest.mark.parametrize(
    ("area", "read", "written"),
    [
        (Area.MEMORIES, {("a", None), ("b", None), ("a", "u"), ("b", "u")}, {("a", "u"), ("b", "u")}),
        (Area.WORKING_MEMORY, {("a", None), ("b", None), ("a", "u"), ("b", "u")}, {("a", "u"), ("b", "u")}),
        (Area.SESSIONS, {("a", "u"), ("b", "u")}, {("a", "u"), ("b", "u")}),
        (Area.SESSION_WORKING_MEMORY, {("a", "u"), ("b", "u")}, {("a", "u"), ("b", "u")}),
        (Area.DREAMS, {("a", "u"), ("b", "u")}, {("a", "u"), ("b", "u")}),
        (Area.AGENTS, set(), set()),
        (Area.AGENT_BUDGETS, set(), set()),
    ],
)
def test_a_key_bound_to_a_user_reads_the_common_records_and_writes_the_users_alone(
    area: Area, read: Owners, written: Owners
) -> None:
    assert _reached(TO_USER, area, Action.READ) == read
    assert _reached(TO_USER, area, Action.WRITE) == written
    assert _reached(TO_BOTH, area, Action.READ) == {owner for owner in read if owner[0] == "a"}
    assert _reached(TO_BOTH, area, Action.WRITE) == {owner for owner in written if owner[0] == "a"}


def test_what_nobody_has_opened_is_read_by_all_and_written_by_unbound_keys() -> None:
    nobody = Owner(namespace="patrol/q")
    for caller in BOUND:
        assert rights.allows(caller, Area.WORKING_MEMORY, Action.READ, nobody)
        with pytest.raises(errors.Forbidden):
            rights.require(caller, Area.WORKING_MEMORY, Action.WRITE, nobody, "missing")
    assert rights.allows(UNBOUND, Area.WORKING_MEMORY, Action.WRITE, nobody)


def test_what_a_deleted_owner_left_is_nobodys() -> None:
    left = Owner(namespace="session/q", is_deleted=True)
    for caller in (TO_AGENT, TO_USER, TO_BOTH, TO_AGENT_AND_NAMESPACE):
        with pytest.raises(errors.NotFound, match="missing"):
            rights.require(caller, Area.WORKING_MEMORY, Action.READ, left, "missing")


@pytest.mark.parametrize("area", Area)
def test_a_key_bound_to_a_namespace_reads_working_memory_and_writes_its_own(area: Area) -> None:
    if area not in {Area.WORKING_MEMORY, Area.SESSION_WORKING_MEMORY}:
        for action in Action:
            with pytest.raises(errors.Forbidden, match="bound to namespace"):
                rights.require_area(TO_NAMESPACE, area, action)
        return
    assert _reached(TO_NAMESPACE, area, Action.READ) == OWNERS
    own, other = Owner("b", "v", "patrol/p"), Owner("b", "v", "patrol/p2")
    assert rights.allows(TO_NAMESPACE, area, Action.WRITE, own)
    assert not rights.allows(TO_NAMESPACE, area, Action.WRITE, other)


@pytest.mark.parametrize("caller", BOUND)
def test_a_bound_key_is_no_key_of_the_whole_tenant(caller: Caller) -> None:
    assert rights.is_unbound(UNBOUND) is True
    assert rights.is_unbound(caller) is False


def test_a_second_binding_narrows_and_never_widens() -> None:
    area = Area.WORKING_MEMORY
    for owner in (Owner("a", None, "patrol/p"), Owner(namespace="patrol/p")):
        assert rights.allows(TO_AGENT_AND_NAMESPACE, area, Action.WRITE, owner)
    for owner in (Owner("b", None, "patrol/p"), Owner("a", None, "patrol/q")):
        assert not rights.allows(TO_AGENT_AND_NAMESPACE, area, Action.WRITE, owner)
    assert not rights.allows(TO_AGENT_AND_NAMESPACE, area, Action.READ, Owner("b", None, "patrol/p"))


def test_narrowing_a_key_is_binding_it_and_never_widens() -> None:
    assert rights.narrow(UNBOUND, "a", "u") == TO_BOTH
    assert rights.narrow(TO_AGENT, None, "u") == TO_BOTH
    assert rights.narrow(TO_USER, "a", "u") == TO_BOTH
    assert rights.narrow(TO_NAMESPACE, "a") == TO_AGENT_AND_NAMESPACE
    for caller in (UNBOUND, *BOUND):
        assert rights.narrow(caller) == caller
    for caller, agent_id, user_id in ((TO_AGENT, "b", None), (TO_USER, None, "v"), (TO_BOTH, "a", "U")):
        with pytest.raises(errors.Forbidden, match="bound to"):
            rights.narrow(caller, agent_id, user_id)
    for agent_id, user_id in ((" a", None), ("a/kv", None), (None, "..")):
        with pytest.raises(errors.Invalid):
            rights.narrow(UNBOUND, agent_id, user_id)


def test_only_a_key_bound_to_a_namespace_is_kept_to_working_memory() -> None:
    for caller in (UNBOUND, TO_AGENT, TO_USER, TO_BOTH):
        rights.require_more_than_working_memory(caller)
    for caller in (TO_NAMESPACE, TO_AGENT_AND_NAMESPACE):
        with pytest.raises(errors.Forbidden, match="working memory alone"):
            rights.require_more_than_working_memory(caller)


def test_no_binding_writes_what_belongs_to_the_tenant() -> None:
    for caller in BOUND:
        with pytest.raises(errors.Forbidden):
            rights.require_area(caller, Area.TENANT, Action.WRITE)
    rights.require_area(UNBOUND, Area.TENANT, Action.WRITE)


def test_a_user_is_erased_by_an_unbound_key_or_one_bound_to_that_user_alone() -> None:
    assert rights.scope(TO_USER, Area.USERS, Action.WRITE, None, "u").user_id == "u"
    for caller in (TO_AGENT, TO_BOTH, TO_NAMESPACE):
        with pytest.raises(errors.Forbidden):
            rights.scope(caller, Area.USERS, Action.WRITE, None, "u")
    with pytest.raises(errors.Forbidden):
        rights.scope(TO_USER, Area.USERS, Action.WRITE, None, "v")


def test_a_key_that_may_do_nothing_of_a_kind_is_refused_before_the_owner_matters() -> None:
    for owner in (Owner("a", "u"), Owner("b", None)):
        with pytest.raises(errors.Forbidden, match="may not read memories"):
            rights.require(TO_NAMESPACE, Area.MEMORIES, Action.READ, owner, "missing")
