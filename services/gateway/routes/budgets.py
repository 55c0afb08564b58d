"""Budgets: how much a tenant, an agent or a purpose may spend in a day or a month (UTC)."""

from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from services.gateway.api_model import ApiModel, Count, Flag, example
from services.gateway.dependencies import AdminCaller, ReadCaller, ResourcesDep
from services.gateway.responses import JsonResponse
from shared.foundation import errors
from shared.platform.spend import budget_admin
from shared.platform.spend.budget import Period

router = APIRouter(prefix="/v1/budgets", tags=["spend"])
MOST_USD, MOST_TOKENS = 10**9, 10**15
BudgetScope = Annotated[
    str,
    Path(description="tenant, agent/<agent_id> or purpose/<purpose>.", examples=["tenant"]),
]


class BudgetBody(ApiModel):
    """A budget; at least one limit. Without a price for the model no call is made under `limit_usd`."""

    model_config = example({"period": "day", "limit_usd": 5, "limit_tokens": 2_000_000})

    period: Period
    limit_usd: Annotated[Decimal, Field(ge=0, le=MOST_USD, decimal_places=12)] | None = None
    limit_tokens: Annotated[Count, Field(ge=0, le=MOST_TOKENS)] | None = None
    allow_unpriced: Flag = False


@router.get("")
async def list_budgets(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """List budgets with what the windows of now have used, reserved and left."""
    found = await budget_admin.read_budgets(resources, caller)
    return JsonResponse({"results": [one.to_json() for one in found], "next_cursor": None})


@router.get("/{scope:path}")
async def get_budget(
    resources: ResourcesDep, caller: ReadCaller, scope: BudgetScope, period: Period | None = None
) -> JsonResponse:
    """Read a scope's budget; of two, that of the day unless the other is asked for."""
    found = await budget_admin.read_budgets(resources, caller, scope)
    for one in found:
        if period in (None, one.period):
            return JsonResponse(one.to_json())
    raise errors.NotFound(f"no budget '{scope}'{f' per {period}' if period else ''}")


@router.put("/{scope:path}")
async def put_budget(
    resources: ResourcesDep, caller: AdminCaller, scope: BudgetScope, body: BudgetBody
) -> JsonResponse:
    """Set a scope's budget of a period; what its window has spent so far counts from the start."""
    kept = await budget_admin.set_budget(
        resources,
        caller,
        scope,
        body.period,
        limit_usd=body.limit_usd,
        limit_tokens=body.limit_tokens,
        allow_unpriced=body.allow_unpriced,
    )
    return JsonResponse(kept.to_json())


@router.delete("/{scope:path}")
async def delete_budget(
    resources: ResourcesDep, caller: AdminCaller, scope: BudgetScope, period: Period | None = None
) -> JsonResponse:
    """Take a scope's budgets away, of one period or both; none is no error."""
    gone = await budget_admin.delete_budget(resources, caller, scope, period)
    return JsonResponse({"scope": scope, "deleted": [one.period for one in gone]})
