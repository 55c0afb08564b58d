"""Observations as they are reported, stored and returned by the API.

A stored observation never changes; newer knowledge is a new observation.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import validation
from shared.foundation.origin import UNKNOWN, Origin, Trust
from shared.foundation.scope import Scope

MAX_OBSERVATION_CONTENT = 16_000
MAX_DATA_BYTES = 16_384


class ObservationKind(StrEnum):
    """The kinds of observations."""

    FACT = "fact"
    SUMMARY = "summary"
    REFLECTION = "reflection"
    REPORT = "report"  # saved by its own route, which promotes what the session's scratchpad holds


class ObservationDraft(BaseModel):
    """An observation that is to be stored."""

    model_config = ConfigDict(frozen=True)

    kind: ObservationKind
    content: str
    data: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = Field(default_factory=dict)
    observed_at: datetime | None = None
    # The trust that the caller asks for, which is never more than the server gives.
    trust: Trust | None = None

    def validated(self) -> "ObservationDraft":
        """Return the draft as it will be stored; raise errors.Invalid that names the field and the rule."""
        observed_at = self.observed_at
        return self.model_copy(
            update={
                "content": validation.check_text(self.content, "content", MAX_OBSERVATION_CONTENT),
                "data": validation.check_json(self.data, "data", MAX_DATA_BYTES),
                "tags": validation.check_tags(self.tags),
                "metadata": validation.check_metadata(self.metadata),
                "observed_at": observed_at and validation.check_time(observed_at, "observed_at"),
            }
        )


class Observation(BaseModel):
    """An observation as stored in Postgres."""

    model_config = ConfigDict(frozen=True)

    id: str
    session_id: str
    kind: ObservationKind
    content: str
    data: dict[str, Any] | None
    tags: list[str]
    metadata: dict[str, str]
    observed_at: datetime | None
    created_at: datetime
    agent_id: str
    user_id: str | None
    origin: Origin = UNKNOWN
    tenant: str = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Observation":
        """Build an observation from a row of `observation`."""
        fields: dict[str, Any] = {**row}
        return cls.model_validate(fields | {"origin": Origin.from_row(fields)})

    @property
    def scope(self) -> Scope:
        """The scope that the observation belongs to."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    @property
    def at(self) -> datetime:
        """The time of the observation, or of its report if the former is unknown."""
        return self.observed_at or self.created_at
