"""Budgets: how much a tenant, an agent or a purpose may spend per day or month (UTC)."""

from decimal import Decimal
from typing import Annotated

from fastapi import Path
from pydantic import Field

from services.gateway.api_model import ApiModel, Count, Flag, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import AdminCaller, ReadCaller, ResourcesDep
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.spend_response_models import BudgetState, DeletedBudgets
from shared.foundation import errors
from shared.platform.spend import budget_admin
from shared.platform.spend.budget import Period

router = authenticated_router(prefix="/v1/budgets", tags=["spend"])
MAX_USD, MAX_TOKENS = 10**9, 10**15
BudgetScope = Annotated[
    str,
    Path(description="tenant, agent/<agent_id> or purpose/<purpose>.", examples=["tenant"]),
]


class BudgetBody(ApiModel):
    """A budget with at least one limit.

    Under `limit_usd`, models without a price are not called unless `allow_unpriced` is true.
    """

    model_config = example({"period": "day", "limit_usd": 5, "limit_tokens": 2_000_000})

    period: Period
    limit_usd: Annotated[Decimal, Field(ge=0, le=MAX_USD, decimal_places=12)] | None = None
    limit_tokens: Annotated[Count, Field(ge=0, le=MAX_TOKENS)] | None = None
    allow_unpriced: Flag = False


@router.get("", response_model=Page[BudgetState])
async def list_budgets(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """List budgets with what their current windows have used, reserved and left."""
    budgets = await budget_admin.read_budgets(resources, caller)
    return JsonResponse({"results": [budget.to_json() for budget in budgets], "next_cursor": None})


@router.get("/{scope:path}", response_model=BudgetState)
async def get_budget(
    resources: ResourcesDep, caller: ReadCaller, scope: BudgetScope, period: Period | None = None
) -> JsonResponse:
    """Read the budget of a scope. If there are two and no `period` is given, return that of the day."""
    for budget in await budget_admin.read_budgets(resources, caller, scope):
        if period in (None, budget.period):
            return JsonResponse(budget.to_json())
    raise errors.NotFound(f"no budget '{scope}'{f' per {period}' if period else ''}")


@router.put("/{scope:path}", response_model=BudgetState)
async def put_budget(
    resources: ResourcesDep, caller: AdminCaller, scope: BudgetScope, body: BudgetBody
) -> JsonResponse:
    """Set the budget of a scope for a period. What its current window has already spent counts."""
    budget = await budget_admin.set_budget(
        resources,
        caller,
        scope,
        body.period,
        limit_usd=body.limit_usd,
        limit_tokens=body.limit_tokens,
        allow_unpriced=body.allow_unpriced,
    )
    return JsonResponse(budget.to_json())


@router.delete("/{scope:path}", response_model=DeletedBudgets)
async def delete_budget(
    resources: ResourcesDep, caller: AdminCaller, scope: BudgetScope, period: Period | None = None
) -> JsonResponse:
    """Delete the budgets of a scope, of one period or both. It is no error if there is none."""
    deleted_budgets = await budget_admin.delete_budget(resources, caller, scope, period)
    return JsonResponse({"scope": scope, "deleted": [budget.period for budget in deleted_budgets]})
