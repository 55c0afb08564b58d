"""What a key may do with whose records: one table, which every capability asks.

An unbound key may do everything in its tenant. A bound key may do what `_TABLE` allows its binding; a key
with several bindings may do what all of them allow. The right `admin` is asked for besides and widens no
binding. A record that a key may not read is answered as if it did not exist (errors.NotFound); an action
that the table does not allow on a record that the key may read is errors.Forbidden.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from shared.foundation import errors
from shared.foundation.names import fold
from shared.foundation.roles import Role, names_system
from shared.foundation.scope import DEFAULT_AGENT, Caller, Scope

SYSTEM_RULE = "role 'system' needs a key that is unbound or bound to an agent alone, and so does its name"


class Binding(StrEnum):
    """What a key can be bound to, by the name of the field."""

    AGENT = "agent_id"
    USER = "user_id"
    NAMESPACE = "namespace"


class Area(StrEnum):
    """The records and settings that have rights of their own."""

    MEMORIES = "memories"
    SESSIONS = "sessions"  # with their turns, observations, feedback and state
    DREAMS = "dream runs"
    SCRATCH_STORES = "scratch stores"
    SESSION_WORKING_MEMORY = "the working memory of sessions"
    WORKING_MEMORY = "the working memory of patrols, of subagents and of nobody"
    AGENTS = "the profiles, keys, texts and files of agents"
    AGENT_BUDGETS = "the budgets of agents"
    SPEND = "spend"
    USERS = "whole users"
    TENANT = "what belongs to the whole tenant"


class Action(StrEnum):
    """To read a record, or to do anything that changes what others read."""

    READ = "read"
    WRITE = "write"


class Ownership(StrEnum):
    """Whose a record is, seen from one binding of a key."""

    OWN = "own"
    COMMON = "common"  # of no user, or of nobody at all
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a record is. A record without an agent and without a user belongs to nobody.

    `namespace` is set for working memory alone. `is_deleted` says that the owner was deleted: until the
    record is deleted too, it belongs to no binding.
    """

    agent_id: str | None = None
    user_id: str | None = None
    namespace: str | None = None
    is_deleted: bool = False


_OWN = frozenset({Ownership.OWN})
_OWN_AND_COMMON = frozenset({Ownership.OWN, Ownership.COMMON})
_ALL = frozenset(Ownership)
_R, _W = Action.READ, Action.WRITE

# What a binding allows; an area or an action that is not named is not allowed. A recall shows a user the
# common memories of an agent and its patrols, but no session of another user or of none.
_TABLE: Mapping[Binding, Mapping[Area, Mapping[Action, frozenset[Ownership]]]] = {
    Binding.AGENT: {
        Area.MEMORIES: {_R: _OWN, _W: _OWN},
        Area.SESSIONS: {_R: _OWN, _W: _OWN},
        Area.DREAMS: {_R: _OWN, _W: _OWN},
        Area.SCRATCH_STORES: {_R: _OWN, _W: _OWN},
        Area.SESSION_WORKING_MEMORY: {_R: _OWN, _W: _OWN},
        Area.WORKING_MEMORY: {_R: _OWN_AND_COMMON, _W: _OWN},
        Area.AGENTS: {_R: _OWN, _W: _OWN},
        Area.AGENT_BUDGETS: {_R: _OWN},
        Area.SPEND: {_R: _OWN},
        Area.TENANT: {_R: _ALL},
    },
    Binding.USER: {
        Area.MEMORIES: {_R: _OWN_AND_COMMON, _W: _OWN},
        Area.SESSIONS: {_R: _OWN, _W: _OWN},
        Area.DREAMS: {_R: _OWN, _W: _OWN},
        Area.SCRATCH_STORES: {_R: _OWN, _W: _OWN},
        Area.SESSION_WORKING_MEMORY: {_R: _OWN, _W: _OWN},
        Area.WORKING_MEMORY: {_R: _OWN_AND_COMMON, _W: _OWN},
        Area.SPEND: {_R: _OWN},
        Area.USERS: {_W: _OWN},
        Area.TENANT: {_R: _ALL},
    },
    Binding.NAMESPACE: {
        Area.SESSION_WORKING_MEMORY: {_R: _ALL, _W: _OWN},
        Area.WORKING_MEMORY: {_R: _ALL, _W: _OWN},
    },
}


def allows(caller: Caller, area: Area, action: Action, owner: Owner) -> bool:
    """Return whether every binding of a key allows an action on a record of this owner."""
    return all(
        _ownership(caller, binding, owner) in _allowed(binding, area, action) for binding in _bindings(caller)
    )


def require(caller: Caller, area: Area, action: Action, owner: Owner, missing: str) -> None:
    """Raise errors.NotFound, with the message `missing`, if the key may not read a record of this owner.

    Raise errors.Forbidden if it may read it but not do this, or may do nothing of this kind in this area.
    """
    require_area(caller, area, action)
    if not allows(caller, area, Action.READ, owner):
        raise errors.NotFound(missing)
    for binding in _bindings(caller):
        if _ownership(caller, binding, owner) not in _allowed(binding, area, action):
            raise errors.Forbidden(f"{_bound_to(caller, binding)}: this belongs to others too")


def require_area(caller: Caller, area: Area, action: Action) -> None:
    """Raise errors.Forbidden if a binding of the key allows this action on no record of this area."""
    for binding in _bindings(caller):
        if not _allowed(binding, area, action):
            raise errors.Forbidden(f"{_bound_to(caller, binding)}: it may not {action} {area}")


def require_more_than_working_memory(caller: Caller) -> None:
    """Raise errors.Forbidden if a binding of the key allows working memory alone."""
    for binding in _bindings(caller):
        if _TABLE[binding].keys() <= {Area.SESSION_WORKING_MEMORY, Area.WORKING_MEMORY}:
            raise errors.Forbidden(f"{_bound_to(caller, binding)}: it reaches working memory alone")


def scope(
    caller: Caller, area: Area, action: Action, agent_id: str | None = None, user_id: str | None = None
) -> Scope:
    """Return the scope that a request names, if the key may act in it.

    The key's bindings are the defaults. Raise errors.Forbidden for another agent or user than the key is
    bound to, and as `require_area` does.
    """
    require_area(caller, area, action)
    agent = _require_bound_value(caller, Binding.AGENT, agent_id) or DEFAULT_AGENT
    return Scope(caller.tenant, agent, _require_bound_value(caller, Binding.USER, user_id))


def narrow(caller: Caller, agent_id: str | None = None, user_id: str | None = None) -> Caller:
    """Return the caller as if its key were bound to this agent and this user too, where they are given.

    Raise errors.Forbidden for another agent or user than the key is bound to, and errors.Invalid for what is
    no id.
    """
    agent = _require_bound_value(caller, Binding.AGENT, agent_id)
    user = _require_bound_value(caller, Binding.USER, user_id)
    Scope(caller.tenant, agent or DEFAULT_AGENT, user)  # checks both ids
    return replace(caller, agent_id=agent, user_id=user)


def require_voice(caller: Caller, role: Role, speaker: str | None = None) -> None:
    """Raise errors.Forbidden if the key may not report or change turns of this role and speaker."""
    if not may_speak_as(caller, role, speaker):
        raise errors.Forbidden(SYSTEM_RULE)


def may_speak_as(caller: Caller, role: Role, speaker: str | None = None) -> bool:
    """Return whether the key may report and change turns of this role and speaker.

    A model obeys the system, so a key that is given to one user, or for one namespace, does not speak for it.
    Lines of past turns begin with the speaker, so a name is as good as a role.
    """
    is_of_system = role is Role.SYSTEM or (speaker is not None and names_system(speaker))
    return not is_of_system or caller.bindings.keys() <= {Binding.AGENT}


def is_unbound(caller: Caller) -> bool:
    """Return whether the key may act in its whole tenant."""
    return not _bindings(caller)


def _bindings(caller: Caller) -> list[Binding]:
    return [binding for binding in Binding if _bound_value(caller, binding) is not None]


def _bound_value(caller: Caller, binding: Binding) -> str | None:
    return caller.bindings.get(binding)


def _bound_to(caller: Caller, binding: Binding) -> str:
    return f"this key is bound to {binding} '{_bound_value(caller, binding)}'"


def _allowed(binding: Binding, area: Area, action: Action) -> frozenset[Ownership]:
    return _TABLE[binding].get(area, {}).get(action, frozenset())


def _ownership(caller: Caller, binding: Binding, owner: Owner) -> Ownership:
    if binding is Binding.NAMESPACE:
        return Ownership.OWN if _is_bound_namespace(caller, owner) else Ownership.FOREIGN
    if owner.is_deleted:
        return Ownership.FOREIGN
    if owner.agent_id is None and _is_bound_namespace(caller, owner):
        return Ownership.OWN
    value = owner.agent_id if binding is Binding.AGENT else owner.user_id
    if value is None:
        return Ownership.COMMON
    return Ownership.OWN if value == _bound_value(caller, binding) else Ownership.FOREIGN


def _is_bound_namespace(caller: Caller, owner: Owner) -> bool:
    if caller.namespace is None or owner.namespace is None:
        return False
    return fold(owner.namespace) == fold(caller.namespace)


def _require_bound_value(caller: Caller, binding: Binding, requested: str | None) -> str | None:
    bound = _bound_value(caller, binding)
    if bound is None or requested is None or requested == bound:
        return requested or bound
    raise errors.Forbidden(_bound_to(caller, binding))
