"""The models of requests and responses on proposals."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from services.gateway.api_model import ApiModel, example
from shared.foundation.stages import DreamPass
from shared.memory.longterm.memory import MAX_CONTENT
from shared.memory.proposals.proposal import MAX_REASON, ProposalState


class ProposalAction(StrEnum):
    """What a caller decides about a proposal."""

    APPROVE = "approve"
    REFUSE = "refuse"


class ProposalDecision(ApiModel):
    """What is to become of a proposal, and why. `edited` is stored instead of its text."""

    model_config = example({"action": "approve", "edited": "Ada moved to Rome in May."})

    action: ProposalAction
    edited: Annotated[str | None, Field(max_length=MAX_CONTENT)] = None
    reason: Annotated[str | None, Field(max_length=MAX_REASON)] = None


class ProposalEvidence(ApiModel):
    """What a proposal rests on: a turn, a memory or, for a skill, a session."""

    session_id: str | None = None
    seq: int | None = None
    memory_id: str | None = None


class ProposedSkill(ApiModel):
    """The skill that a proposal would publish, those that it would delete, and the run that proposes it."""

    name: str
    summary: str
    replaces: list[str]
    run_id: str
    pass_name: DreamPass = Field(alias="pass", serialization_alias="pass")


class ProposalResponse(ApiModel):
    """A proposal. `skill` is set for the kind `skill` alone; the fields of a memory are for all others."""

    id: str
    kind: str
    text: str
    category: str | None = None
    tags: list[str] = []
    importance: float | None = None
    occurred_at: datetime | None = None
    closes: str | None = None
    evidence: list[ProposalEvidence]
    signs: list[str] = []
    state: ProposalState
    agent_id: str
    user_id: str | None
    created_at: datetime
    expires_at: datetime | None = None
    decided_by: str | None
    decided_at: datetime | None
    reason: str | None
    memory_id: str | None = None
    skill: ProposedSkill | None = None
