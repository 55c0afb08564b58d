"""The bodies of responses that several routes share, for the OpenAPI document.

Responses are written without their models, because a validation would take time. Those of one capability
stand in the other files `…_models.py`.
"""

from datetime import datetime
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel

from services.gateway.api_model import ApiModel

T = TypeVar("T", bound=BaseModel)


class Violation(ApiModel):
    """A field, as a dotted path, and the rule that it breaks."""

    field: str
    rule: str


class Problem(ApiModel):
    """An error (RFC 9457), with content type `application/problem+json`."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Violation]


class Page(ApiModel, Generic[T]):
    """A page of a list. The next page begins at `next_cursor`; null says that this is the last."""

    results: list[T]
    next_cursor: str | None = None


class DeletedRecord(ApiModel):
    """Whether there was a record of this id to delete."""

    id: str
    deleted: bool


class DeletedName(ApiModel):
    """Whether there was something of this name to delete."""

    name: str
    deleted: bool


class DeletedCount(ApiModel):
    """How many records were deleted."""

    deleted: int


class ErasureReceipt(ApiModel):
    """What an erasure has deleted, by kind, and which databases are done. It names nobody."""

    id: str | None
    subject: str
    digest: str | None = None
    created_at: datetime | None = None
    state: Literal["pending", "done", "dry_run"]
    erased: dict[str, int]
    stores: dict[str, Literal["pending", "done", "untouched"]]
    agent_id: str | None = None
    user_id: str | None = None
    dry_run: bool | None = None


class Delay(ApiModel):
    """Why jobs of a stage wait, and how many."""

    stage: str
    reason: str
    rows: int


class PausedStage(ApiModel):
    """A stage whose model refuses every request."""

    stage: str
    reason_code: str
    since: datetime


class FullScope(ApiModel):
    """A scope in which too many proposals wait for a decision: its turns are not mined meanwhile."""

    agent_id: str
    user_id: str | None
    held: int


class WaitingProposals(ApiModel):
    """How many proposals wait for a decision, and where mining pauses because of them."""

    held: int
    mining_paused: list[FullScope]


class StatusResponse(ApiModel):
    """The pending work of a tenant, by stage."""

    pending: dict[str, int]
    dead: dict[str, int]
    oldest_pending_seconds: float
    delayed: list[Delay]
    paused: list[PausedStage]
    proposals: WaitingProposals


class Health(ApiModel):
    """The process runs."""

    status: Literal["ok"]


class Readiness(ApiModel):
    """Whether requests would succeed, and the state of each database."""

    status: Literal["ready", "not ready", "draining"]
    stores: dict[str, str]
