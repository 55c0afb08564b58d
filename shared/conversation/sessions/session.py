"""A session, as it is opened and shown."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.conversation.sessions import totals
from shared.foundation import errors
from shared.foundation.scope import Scope


class SessionKind(StrEnum):
    """What a session is for; it decides which desk it writes to and what its context shows."""

    SESSION = "session"
    PATROL = "patrol"
    SUBAGENT = "subagent"


STORE_TYPES = ("basic_session", "tmp")


def validate_store_types(store_types: Sequence[str]) -> list[str]:
    """Return store types without repeats, `tmp` for none; raise errors.Invalid for an unknown one."""
    wanted = list(dict.fromkeys(store_types)) or ["tmp"]
    for store_type in wanted:
        if store_type not in STORE_TYPES:
            rule = f"unknown store type: {store_type}; must be of {', '.join(STORE_TYPES)}"
            raise errors.Invalid("store_types", rule)
    return wanted


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
    # The totals of what was reported; None before the first charge.
    spend: dict[str, Any] | None = None
    tenant: str = Field(exclude=True)
    last_seq: int = Field(exclude=True)
    # Whether the conversation window has lain idle too long to be replayed.
    window_expired: bool = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Session":
        """Read a session from a row of `session` with its computed `idle`."""
        return cls.model_validate({**row, "spend": totals.of(row)})

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the session as pydantic does, but money as JSON with its own digits."""
        return super().model_dump(**options) | {"spend": totals.shown(self.spend)}

    @property
    def scope(self) -> Scope:
        """Whose memory this session works with."""
        return Scope(self.tenant, self.agent_id, self.user_id)


def namespace_of(kind: SessionKind, session_id: str, name: str | None) -> str:
    """Return the desk that a session writes to: two segments, whatever the id looks like."""
    own = session_id if kind is SessionKind.SESSION else name or session_id
    return f"{kind}/{own.replace('/', ':')}"
