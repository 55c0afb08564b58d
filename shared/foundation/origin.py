"""Where a record comes from, and how far it is trusted: both are given by the server, never by a caller.

A caller may lower the trust of what it writes, and never raise it. What is derived from records has the least
trust of these. What was stored before origins were noted counts as said by nobody known: `Trust.OUTSIDE`.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from shared.foundation import errors
from shared.foundation.roles import Role


class Channel(StrEnum):
    """The way in which a record came."""

    TURN = "turn"
    API = "api"
    TOOL = "tool"  # a tool call, at /v1/tools or over MCP
    DOCUMENT = "document"
    IMPORT = "import"
    MODEL = "model"  # derived by a language model, or by a pass


class Trust(StrEnum):
    """Who said it: a rank. They are ordered, `OUTSIDE` is the least."""

    OUTSIDE = "outside"
    USER = "user"
    AGENT = "agent"
    OPERATOR = "operator"

    # Texts are ordered by their letters, which would put an agent below a user.
    def __lt__(self, other: str) -> bool:
        return _RANK[self] < _RANK[Trust(other)]

    def __le__(self, other: str) -> bool:
        return _RANK[self] <= _RANK[Trust(other)]

    def __gt__(self, other: str) -> bool:
        return _RANK[self] > _RANK[Trust(other)]

    def __ge__(self, other: str) -> bool:
        return _RANK[self] >= _RANK[Trust(other)]


_RANK = {trust: rank for rank, trust in enumerate(Trust)}
_TRUST_OF_ROLE = {
    Role.USER: Trust.USER,
    Role.ASSISTANT: Trust.OUTSIDE,
    Role.SUMMARY: Trust.OUTSIDE,
}


class Origin(BaseModel):
    """Where a record comes from. Callers see channel and trust; the key stands in the record's history."""

    model_config = ConfigDict(frozen=True)

    channel: Channel = Channel.API
    trust: Trust = Trust.OUTSIDE
    key_id: str | None = Field(default=None, exclude=True)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Origin":
        """Return the origin that a row says."""
        return cls(channel=row["origin_channel"], trust=row["origin_trust"], key_id=row["origin_key"])

    @classmethod
    def derived(cls, trusts: Iterable[Trust]) -> "Origin":
        """Return the origin of what a model or a pass made of records of these trusts."""
        return cls(channel=Channel.MODEL, trust=least(trusts))

    def columns(self) -> dict[str, str | None]:
        """Return the columns of a row that say this origin."""
        trust, channel = self.trust.value, self.channel.value
        return {"origin_channel": channel, "origin_trust": trust, "origin_key": self.key_id}

    def limited(self, trust: Trust | None) -> "Origin":
        """Return the origin with at most this trust; None is no limit."""
        return self if trust is None or trust >= self.trust else self.model_copy(update={"trust": trust})

    def imported(self, importer: "Origin") -> "Origin":
        """Return the origin of a record that is imported with this one: trusted at most as its importer.

        It keeps its channel: an import elsewhere exports the same lines again.
        """
        trust = least([self.trust, importer.trust])
        return Origin(channel=self.channel, trust=trust, key_id=importer.key_id)

    def lowered(self, requested: Trust | None) -> "Origin":
        """Return the origin with the trust that a caller asks for; None asks for nothing.

        Raises errors.Invalid for more than the server gives.
        """
        if requested is not None and requested > self.trust:
            raise errors.Invalid("trust", f"can only be lowered: it is at most '{self.trust}' here")
        return self.limited(requested)


UNKNOWN = Origin()
"""The origin of what was stored before origins were noted."""


def least(trusts: Iterable[Trust]) -> Trust:
    """Return the least of these trusts; of none, the least of all: nothing vouches for it."""
    return min(trusts, default=Trust.OUTSIDE)


def trust_of_role(role: Role, trust_of_key: Trust) -> Trust:
    """Return the trust of a turn of this role, which a key reports: a system's is that of the key."""
    return _TRUST_OF_ROLE.get(role, trust_of_key)
