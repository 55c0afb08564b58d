"""An observation, as it is reported, kept and shown. It never changes: what was learnt since is another."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import errors, validation
from shared.foundation.scope import Scope

MAX_CONTENT = 16_000
MAX_DATA = 16_384


class ObservationKind(StrEnum):
    """What kind of thing was observed."""

    FACT = "fact"
    SUMMARY = "summary"
    REFLECTION = "reflection"


class ObservationDraft(BaseModel):
    """An observation somebody reports."""

    model_config = ConfigDict(frozen=True)

    kind: ObservationKind
    content: str
    data: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = Field(default_factory=dict)
    observed_at: datetime | None = None

    def validated(self) -> "ObservationDraft":
        """Return the draft as it will be stored; raise errors.Invalid naming the field and the rule."""
        at = self.observed_at
        return self.model_copy(
            update={
                "content": validation.check_text(self.content, "content", MAX_CONTENT),
                "data": _checked_data(self.data),
                "tags": validation.check_tags(self.tags),
                "metadata": validation.check_metadata(self.metadata),
                "observed_at": at and validation.check_time(at, "observed_at"),
            }
        )


def _checked_data(data: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the object if it reads back as it is; numbers of ever more digits and depths don't."""
    try:
        packed = orjson.dumps(data)
        is_kept = orjson.loads(packed) == data
    except (TypeError, ValueError):
        is_kept, packed = False, b""
    if not is_kept:
        raise errors.Invalid("data", "must be JSON of ordinary depth, with finite numbers of 64 bits")
    if len(packed) > MAX_DATA:
        raise errors.TooLarge("data", f"must be at most {MAX_DATA} bytes of JSON")
    return data


class Observation(BaseModel):
    """An observation as it stands in Postgres."""

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
    tenant: str = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Observation":
        """Read an observation from a row of `observation`."""
        return cls.model_validate({**row})

    @property
    def scope(self) -> Scope:
        """Whose observation this is."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    @property
    def at(self) -> datetime:
        """When it was observed, or else when it was reported."""
        return self.observed_at or self.created_at
