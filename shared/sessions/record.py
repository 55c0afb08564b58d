"""A session, as it is opened and shown."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.scope import Scope


class SessionKind(StrEnum):
    """What a session is for; it decides which desk it writes to and what its context shows."""

    SESSION = "session"
    PATROL = "patrol"
    SUBAGENT = "subagent"


STORE_TYPES = ("basic_session", "tmp")


class Session(BaseModel):
    """A session as it stands in Postgres."""

    model_config = ConfigDict(frozen=True)

    id: str
    kind: SessionKind
    name: str | None
    agent_id: str
    user_id: str | None
    namespace: str
    store_types: list[str]
    created_at: datetime
    ttl_seconds: int | None
    expires_at: datetime | None
    last_agent: str | None
    # Booked by the spend of this session's own model calls; nothing books yet.
    spend: dict[str, Any] | None = None
    tenant: str = Field(exclude=True)
    last_seq: int = Field(exclude=True)
    # Whether the conversation window has lain idle too long to be replayed.
    idle: bool = Field(exclude=True)

    @classmethod
    def of(cls, row: RowMapping) -> "Session":
        """Read a session from a row of `session` with its computed `idle`."""
        return cls.model_validate({**row})

    @property
    def scope(self) -> Scope:
        """Whose memory this session works with."""
        return Scope(self.tenant, self.agent_id, self.user_id)


def namespace_of(kind: SessionKind, session_id: str, name: str | None) -> str:
    """Return the desk that a session writes to: two segments, whatever the id looks like."""
    own = session_id if kind is SessionKind.SESSION else name or session_id
    return f"{kind}/{own.replace('/', ':')}"
