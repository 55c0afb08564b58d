"""A dream run and its passes, as they are kept and shown."""

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
    """Where a run stands."""

    RUNNING = "running"
    DONE = "done"  # every pass came to an end, whichever
    UNDONE = "undone"


class PassState(StrEnum):
    """Where a pass stands. A pass that ends in any way lets the next one begin."""

    WAITING = "waiting"
    DONE = "done"
    SKIPPED = "skipped"  # nothing to do, switched off, or no model: the reason says which
    FAILED = "failed"  # the model or a store failed as often as allowed; nothing was changed


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
    # What its answers cost; None where the model has no price, or was not asked.
    cost_usd: Decimal | None = None
    proposed: Any
    rejections: list[dict[str, Any]]
    applied: dict[str, int]
    started_at: datetime | None
    finished_at: datetime | None


class Run(BaseModel):
    """One run over one scope."""

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
        """Whose memory is dreamed over: exactly this agent and user."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    @property
    def next_pass(self) -> Pass | None:
        """The first pass that has not come to an end."""
        return next((one for one in self.passes if one.state is PassState.WAITING), None)

    @classmethod
    def from_row(cls, row: RowMapping, passes: list[RowMapping]) -> "Run":
        """Read a run from its row and those of its passes."""
        return cls.model_validate({**row, "passes": [{**one} for one in passes]})

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the run as pydantic does, but money as JSON with its own digits."""
        told = super().model_dump(**options)
        for one, shown in zip(self.passes, told.get("passes", []), strict=False):
            shown["cost_usd"] = money.to_json_number(one.cost_usd)
        return told
