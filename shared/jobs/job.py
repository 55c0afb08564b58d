"""A job: one row of the durable queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sqlalchemy import RowMapping

from shared.foundation.stages import Pipeline, RecordKind


@dataclass(frozen=True, slots=True)
class Job:
    """A job as a worker or a writer knows it.

    `lease_token` is the fencing token of the claim. It is None for a writer that works on a job
    immediately after enqueueing it. `reason_code` is why the job was delayed or released the last time.
    """

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
    reason_code: str | None = None

    @classmethod
    def from_row(cls, row: RowMapping) -> "Job":
        """Read a job from a row with at least the columns JOB_COLUMNS."""
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


LOCK_ORDER = attrgetter("tenant", "kind", "record_id", "generation")
"""The order in which jobs are locked everywhere. Locking in another order could deadlock."""
JOB_COLUMNS = (
    *("id", "tenant", "kind", "record_id", "version", "generation", "lease_token", "attempts", "pipeline"),
    *("traceparent", "reason_code"),
)
