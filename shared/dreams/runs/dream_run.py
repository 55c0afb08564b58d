"""A dream run and its passes, as they are stored and returned by the API."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass
from shared.platform.spend import money


class RunState(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    DONE = "done"  # every pass has ended, in whatever state
    UNDONE = "undone"


class PassState(StrEnum):
    """The state of a pass. The next pass begins however this one ended."""

    WAITING = "waiting"
    DONE = "done"
    SKIPPED = "skipped"  # nothing to do, switched off, or no model: the reason says which
    FAILED = "failed"  # the model or a database failed too often; nothing was changed


class Pass(BaseModel):
    """One pass of a run."""

    model_config = ConfigDict(frozen=True)

    name: DreamPass
    state: PassState
    reason: str | None
    inputs: dict[str, Any]
    directive: str | None
    model: str | None
    input_tokens: int
    output_tokens: int
    # None if the model has no price or was not asked.
    cost_usd: Decimal | None = None
    proposed: Any
    rejections: list[dict[str, Any]]
    applied: dict[str, int]
    started_at: datetime | None
    finished_at: datetime | None


class Run(BaseModel):
    """A run over one scope."""

    model_config = ConfigDict(frozen=True)

    id: str
    agent_id: str
    user_id: str | None
    state: RunState
    dry_run: bool
    actor: str
    created_at: datetime
    finished_at: datetime | None
    undone_at: datetime | None
    passes: list[Pass] = Field(default_factory=list)
    tenant: str = Field(exclude=True)

    @property
    def scope(self) -> Scope:
        """The scope that the run is over: exactly this agent and user."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    @property
    def next_pass(self) -> Pass | None:
        """The first pass that has not ended, or None."""
        return next((pass_ for pass_ in self.passes if pass_.state is PassState.WAITING), None)

    @classmethod
    def from_row(cls, row: RowMapping, passes: Sequence[Mapping[str, Any]]) -> "Run":
        """Build a run from its row and the rows of its passes."""
        return cls.model_validate({**row, "passes": [{**pass_row} for pass_row in passes]})

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the run as pydantic does, but with costs as JSON numbers that keep every digit."""
        payload = super().model_dump(**options)
        for pass_, pass_payload in zip(self.passes, payload.get("passes", []), strict=False):
            pass_payload["cost_usd"] = money.to_json_number(pass_.cost_usd)
        return payload
