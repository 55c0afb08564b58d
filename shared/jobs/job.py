"""A job: one row of the durable queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from shared.foundation.stages import Pipeline, RecordKind


@dataclass(frozen=True, slots=True)
class Job:
    """A work row in somebody's hands. `token` is None for who wrote the row and works at once."""

    id: int
    tenant: str
    kind: RecordKind
    record_id: str
    version: int
    generation: int
    lease_token: str | None
    attempts: int = 0
    pipeline: Pipeline = Pipeline.INDEX
    traceparent: str | None = None

    @classmethod
    def from_row(cls, row: RowMapping) -> "Job":
        """Read a claim from a row of `work`."""
        fields: Mapping[str, Any] = {name: row[name] for name in JOB_COLUMNS}
        lease_token = None if row["lease_token"] is None else str(row["lease_token"])
        return cls(
            **{
                **fields,
                "kind": RecordKind(row["kind"]),
                "pipeline": Pipeline(row["pipeline"]),
                "lease_token": lease_token,
            }
        )


JOB_COLUMNS = (
    *("id", "tenant", "kind", "record_id", "version", "generation", "lease_token", "attempts", "pipeline"),
    "traceparent",
)
