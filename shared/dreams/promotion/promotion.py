"""A promotion: what of a session's scratchpad was examined, and what became of each snippet."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation.scope import Scope

PROMOTED_CATEGORY = "user-preferences/promoted"
"""The category of memories that were promoted as preferences."""


class PromotionTrigger(StrEnum):
    """What a promotion began with."""

    REPORT = "report"
    EXPLICIT = "explicit"


class PromotionTarget(StrEnum):
    """Where promoted snippets go: into a memory of the session's scope, or into the tenant's agent.md."""

    PREFERENCE = "preference"
    BUSINESS_CONTEXT = "business_context"


class PromotionState(StrEnum):
    """Whether the snippets have been examined."""

    PENDING = "pending"
    DONE = "done"


class SnippetOutcome(StrEnum):
    """What became of a snippet."""

    PROMOTED = "promoted"
    REINFORCED = "reinforced"  # the target says it already: counted once more
    NOT_PROMOTED = "not_promoted"
    DELETED_BEFORE = "deleted_before"  # somebody deleted or archived this text: only a caller brings it back
    NO_ROOM = "no_room"  # the business context is full


class PromotionResult(BaseModel):
    """What became of one snippet. `scores` are those of the four criteria, each with its reason."""

    model_config = ConfigDict(frozen=True)

    id: str
    outcome: SnippetOutcome
    scores: dict[str, dict[str, Any]]
    memory_id: str | None = None
    line_id: str | None = None


class Promotion(BaseModel):
    """A promotion as it is stored and returned by the API. Without results while it is pending."""

    model_config = ConfigDict(frozen=True)

    id: str
    session_id: str
    trigger: PromotionTrigger
    target: PromotionTarget
    reason: str | None
    report_id: str | None
    state: PromotionState
    results: list[PromotionResult]
    created_at: datetime
    finished_at: datetime | None
    # Who asked for it: the id of a key.
    actor: str = Field(exclude=True)
    tenant: str = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Promotion":
        """Read a promotion from a row of `promotion`."""
        return cls.model_validate({**row})


def default_target(scope: Scope, *, is_unbound: bool) -> PromotionTarget:
    """Return where the snippets of a session go unless a request says where.

    What was noted for a user stays that user's own. It becomes business context, which the whole tenant
    reads, only if a request says so. A session without a user works for the tenant.
    """
    is_of_tenant = scope.user_id is None and is_unbound
    return PromotionTarget.BUSINESS_CONTEXT if is_of_tenant else PromotionTarget.PREFERENCE
