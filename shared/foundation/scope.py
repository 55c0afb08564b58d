"""Who is asking, and for whose memory.

`Scope` names whose memory is meant: a tenant, one of its agents, and perhaps one user of
that agent. Everything long-term lives in a scope. A reader with a user sees the agent's
common rows (no user) and that user's; a reader without one sees the common rows only.

`Caller` is the credential behind a request. Its tenant is the only source of a tenant.
"""

from dataclasses import dataclass
from typing import Literal

from shared.foundation import errors

Right = Literal["read", "write", "admin"]
DEFAULT_AGENT = "default"
MAX_ID_LENGTH = 128


@dataclass(frozen=True, slots=True)
class Scope:
    """One tenant's agent, and perhaps one user of it."""

    tenant: str
    agent_id: str = DEFAULT_AGENT
    user_id: str | None = None

    def __post_init__(self) -> None:
        _check_account("agent_id", self.agent_id)
        if self.user_id is not None:
            _check_account("user_id", self.user_id)


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated key: its tenant, its rights, and what it is bound to."""

    key_id: str
    tenant: str
    rights: frozenset[Right]
    agent_id: str | None = None
    user_id: str | None = None
    namespace: str | None = None

    @property
    def bindings(self) -> dict[str, str]:
        """What the key is bound to, by field."""
        fields = {"agent_id": self.agent_id, "user_id": self.user_id, "namespace": self.namespace}
        return {field: value for field, value in fields.items() if value is not None}

    def require_right(self, right: Right) -> None:
        """Raise Forbidden unless the key carries `right`."""
        if right not in self.rights:
            raise errors.Forbidden(f"this key lacks the right '{right}'")

    def require_unbound(self, what: str) -> None:
        """Raise Forbidden if the key is bound to anything; `what` says what belongs to the whole tenant."""
        for field, bound in self.bindings.items():
            raise errors.Forbidden(f"this key is bound to {field} '{bound}'; {what}")

    @property
    def binding_filter(self) -> dict[str, str]:
        """The agent and user that lists of this key are limited to, by column."""
        return {field: value for field, value in self.bindings.items() if field != "namespace"}

    def scope(self, agent_id: str | None, user_id: str | None) -> Scope:
        """Return the scope that is asked for, if the key may act in it.

        What a key is bound to is the default; naming another agent or user is Forbidden.
        """
        agent = _bound("agent_id", self.agent_id, agent_id) or DEFAULT_AGENT
        return Scope(self.tenant, agent, _bound("user_id", self.user_id, user_id))

    def may_see(self, agent_id: str, user_id: str | None) -> bool:
        """Tell whether a row of this agent and user is within what the key is bound to."""
        if self.agent_id is not None and agent_id != self.agent_id:
            return False
        return self.user_id is None or user_id in (None, self.user_id)


def _check_account(field: str, value: str) -> None:
    """Accept any account name that others hand out, as e-mail addresses: printable, one line."""
    if not value.strip() or value != value.strip() or not value.isprintable():
        raise errors.Invalid(field, "must be printable, not blank, without spaces around it")
    if len(value) > MAX_ID_LENGTH:
        raise errors.TooLarge(field, f"must be at most {MAX_ID_LENGTH} characters")


def _bound(field: str, bound: str | None, asked: str | None) -> str | None:
    if bound is None or asked is None or asked == bound:
        return asked or bound
    raise errors.Forbidden(f"this key is bound to {field} '{bound}'")
