"""Responses of the routes on spend, prices and budgets."""

from datetime import datetime

from services.gateway.api_model import ApiModel


class SessionTotals(ApiModel):
    """The usage that was reported for a session. A cost is null if no charge has a price."""

    total_input_tokens: int
    total_output_tokens: int
    total_cached_tokens: int
    total_cost_usd: float | None
    last_updated: datetime | None
    unpriced: int


class RecordedUsage(ApiModel):
    """The usage of a call as it was recorded, with its cost."""

    usage_id: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    created_at: datetime
    cost_usd: float | None


class ReportedTotals(SessionTotals):
    """The totals of a session after a report, and the usage that was recorded."""

    charge: RecordedUsage


class SpendGroup(ApiModel):
    """The sums of one group of charges; the fields that the report doesn't group by are left out."""

    agent_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    purpose: str | None = None
    model: str | None = None
    day: str | None = None
    charges: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None
    unpriced: int
    estimated: int


class BudgetState(ApiModel):
    """A budget with what its current window has used, reserved and left."""

    scope: str
    period: str
    id: str
    allow_unpriced: bool
    used_usd: float
    reserved_usd: float
    limit_usd: float | None
    remaining_usd: float | None
    limit_tokens: int | None
    used_tokens: int
    reserved_tokens: int
    remaining_tokens: int | None
    used_ratio: float | None
    window_starts: datetime
    window_ends: datetime


class Price(ApiModel):
    """The price of a model in USD per million tokens, and where it comes from."""

    model: str
    input: float
    output: float
    cached: float
    source: str


class DeletedPrice(ApiModel):
    """Whether the tenant had a price of its own."""

    model: str
    deleted: bool


class DeletedBudgets(ApiModel):
    """The periods of the budgets that were deleted."""

    scope: str
    deleted: list[str]
