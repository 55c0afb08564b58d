"""Sessions as they are stored and returned by the API."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.platform.spend import money


class SessionKind(StrEnum):
    """What a session is for. The kind determines its working-memory namespace and its context."""

    SESSION = "session"
    PATROL = "patrol"
    SUBAGENT = "subagent"


STORE_TYPES = ("basic_session", "tmp")


def validate_store_types(store_types: Sequence[str]) -> list[str]:
    """Return store types without repeats, or `tmp` for none; raise errors.Invalid for an unknown one."""
    unique_types = list(dict.fromkeys(store_types)) or ["tmp"]
    for store_type in unique_types:
        if store_type not in STORE_TYPES:
            rule = f"unknown store type: {store_type}; must be of {', '.join(STORE_TYPES)}"
            raise errors.Invalid("store_types", rule)
    return unique_types


class Session(BaseModel):
    """A session as stored in Postgres."""

    model_config = ConfigDict(frozen=True)

    id: str
    kind: SessionKind
    name: str | None
    agent_id: str
    user_id: str | None
    namespace: str
    store_types: list[str]
    metadata: dict[str, str]
    created_at: datetime
    ttl_seconds: int | None
    expires_at: datetime | None
    last_agent: str | None
    # The totals of the reported usage; None before the first charge.
    spend: dict[str, Any] | None = None
    tenant: str = Field(exclude=True)
    last_seq: int = Field(exclude=True)
    # The sequence number from which on contexts replay turns; it moves in steps.
    window_start: int = Field(exclude=True)
    # How many turns the session holds; numbers of deleted ones are not used again.
    turn_count: int = Field(exclude=True)
    # Changes whenever a turn is edited or deleted.
    log_revision: int = Field(exclude=True)
    # Whether the session has been idle for so long that its conversation window counts as empty.
    window_expired: bool = Field(exclude=True)
    # Whether the session is over, and only waits for the sweep to delete it.
    is_expired: bool = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Session":
        """Build a session from a row of `session` with the computed columns of `queries`."""
        return cls.model_validate({**row, "spend": _totals_from_row(row)})

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the session as pydantic does, but with costs as exact JSON numbers."""
        return super().model_dump(**options) | {"spend": totals_to_json(self.spend)}

    @property
    def log_state(self) -> tuple[int, int, int]:
        """What changes whenever a turn is appended, edited or deleted, and when the window moves."""
        return self.last_seq, self.log_revision, self.window_start

    @property
    def scope(self) -> Scope:
        """The scope whose memory this session works with."""
        return Scope(self.tenant, self.agent_id, self.user_id)


_TOTAL_COLUMNS = ("total_input_tokens", "total_output_tokens", "total_cached_tokens", "total_cost_usd")


def _totals_from_row(row: RowMapping) -> dict[str, Any] | None:
    """Return a session's totals, or None before the first charge."""
    if row["spend_updated_at"] is None:
        return None
    totals = {name: row[name] for name in _TOTAL_COLUMNS}
    return totals | {"last_updated": row["spend_updated_at"], "unpriced": row["unpriced_charges"]}


def totals_to_json(totals: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a session's totals as JSON, with the cost as an exact number."""
    if totals is None:
        return None
    updated_at: datetime | None = totals["last_updated"]
    last_updated = updated_at.isoformat().replace("+00:00", "Z") if updated_at else None
    cost_usd = money.to_json_number(totals["total_cost_usd"])
    return {**totals, "total_cost_usd": cost_usd, "last_updated": last_updated}


def namespace_of(kind: SessionKind, session_id: str, name: str | None) -> str:
    """Return the working-memory namespace that a session writes to. It always has two segments."""
    owner = session_id if kind is SessionKind.SESSION else name or session_id
    return f"{kind}/{owner.replace('/', ':')}"
