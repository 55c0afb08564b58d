"""The scope of a memory, and the caller behind a request.

A `Scope` tells whose memory is meant: a tenant, one of its agents, and optionally one user of that
agent. Every long-term record belongs to a scope. A reader with a user sees the agent's common records
(those without a user) and the records of that user. A reader without a user sees only the common ones.

A `Caller` is an authenticated API key. The tenant of a request always comes from its caller.
"""

from dataclasses import dataclass, replace
from typing import Literal

from shared.foundation import errors, validation
from shared.foundation.optional_fields import without_none
from shared.foundation.origin import Channel, Origin, Trust

Right = Literal["read", "write", "admin"]
DEFAULT_AGENT = "default"
MAX_ID_LENGTH = 128
AGENT_PARTS = frozenset({"kv", "texts", "files"})
"""The segments that follow an agent's id in a path. An id that has one of them would name another's part."""


@dataclass(frozen=True, slots=True)
class Scope:
    """An agent of a tenant, and optionally one user of that agent."""

    tenant: str
    agent_id: str = DEFAULT_AGENT
    user_id: str | None = None

    def __post_init__(self) -> None:
        check_id("agent_id", self.agent_id)
        if not AGENT_PARTS.isdisjoint(self.agent_id.split("/")[1:]):
            parts = ", ".join(sorted(AGENT_PARTS))
            raise errors.Invalid(
                "agent_id", f"must not have a segment after its first that is one of: {parts}"
            )
        if self.user_id is not None:
            check_id("user_id", self.user_id)


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated API key: its tenant, its rights, its bindings, and the way in which it calls."""

    key_id: str
    tenant: str
    rights: frozenset[Right]
    agent_id: str | None = None
    user_id: str | None = None
    namespace: str | None = None
    channel: Channel = Channel.API

    @property
    def bindings(self) -> dict[str, str]:
        """The values that the key is bound to, by field name."""
        return without_none(agent_id=self.agent_id, user_id=self.user_id, namespace=self.namespace)

    @property
    def trust(self) -> Trust:
        """How far what the key writes is trusted: a key that is bound to a user speaks for that user."""
        if self.user_id is not None:
            return Trust.USER
        return Trust.OPERATOR if "admin" in self.rights and not self.bindings else Trust.AGENT

    @property
    def origin(self) -> Origin:
        """The origin of what the key writes."""
        return Origin(channel=self.channel, trust=self.trust, key_id=self.key_id)

    def via(self, channel: Channel) -> "Caller":
        """Return the caller as it calls in another way."""
        return replace(self, channel=channel)

    def require_right(self, right: Right) -> None:
        """Raise errors.Forbidden unless the key has this right."""
        if right not in self.rights:
            raise errors.Forbidden(f"this key lacks the right '{right}'")

    @property
    def binding_filter(self) -> dict[str, str]:
        """The agent and user that the key's lists are limited to, by column name."""
        return {field: value for field, value in self.bindings.items() if field != "namespace"}


def check_id(field: str, value: str) -> None:
    """Accept any id that another system issues, such as an e-mail address: printable and on one line."""
    if validation.is_blank(value) or value != value.strip() or not value.isprintable():
        raise errors.Invalid(field, "must be printable, not blank, without spaces around it")
    if value in (".", ".."):
        # HTTP clients shorten such a path, so that nobody could erase this user or agent.
        raise errors.Invalid(field, "must not be '.' or '..'")
    if len(value) > MAX_ID_LENGTH:
        raise errors.TooLarge(field, f"must be at most {MAX_ID_LENGTH} characters")
