"""A job: one row of the durable queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from shared.foundation.stages import Kind, Track


@dataclass(frozen=True, slots=True)
class Claim:
    """A work row in somebody's hands. `token` is None for who wrote the row and works at once."""

    id: int
    tenant: str
    kind: Kind
    ref: str
    version: int
    generation: int
    token: str | None
    attempts: int = 0
    track: Track = Track.INDEX
    traceparent: str | None = None

    @classmethod
    def of(cls, row: RowMapping) -> "Claim":
        """Read a claim from a row of `work`."""
        fields: Mapping[str, Any] = {name: row[name] for name in CLAIM_COLUMNS}
        token = None if row["token"] is None else str(row["token"])
        return cls(**{**fields, "kind": Kind(row["kind"]), "track": Track(row["track"]), "token": token})


CLAIM_COLUMNS = (
    *("id", "tenant", "kind", "ref", "version", "generation", "token", "attempts", "track"),
    "traceparent",
)
