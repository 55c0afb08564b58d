"""Budgets: how much a tenant, an agent or a purpose may spend in a day or a month (UTC)."""

from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from services.gateway.api_model import Body, Count, Flag, example
from services.gateway.dependencies import Admin, Opened, Reader
from services.gateway.responses import Json
from shared.foundation import errors
from shared.platform.spend import budget_admin
from shared.platform.spend.budget import Period

router = APIRouter(prefix="/v1/budgets", tags=["spend"])
MOST_USD, MOST_TOKENS = 10**9, 10**15
BudgetScope = Annotated[
    str,
    Path(description="tenant, agent/<agent_id> or purpose/<purpose>.", examples=["tenant"]),
]


class BudgetBody(Body):
    """A budget; at least one limit. Without a price for the model no call is made under `limit_usd`."""

    model_config = example({"period": "day", "limit_usd": 5, "limit_tokens": 2_000_000})

    period: Period
    limit_usd: Annotated[Decimal, Field(ge=0, le=MOST_USD, decimal_places=12)] | None = None
    limit_tokens: Annotated[Count, Field(ge=0, le=MOST_TOKENS)] | None = None
    allow_unpriced: Flag = False


@router.get("")
async def list_budgets(opened: Opened, caller: Reader) -> Json:
    """List budgets with what the windows of now have used, reserved and left."""
    found = await budget_admin.read_budgets(opened, caller)
    return Json({"results": [one.shown() for one in found], "next_cursor": None})


@router.get("/{scope:path}")
async def get_budget(
    opened: Opened, caller: Reader, scope: BudgetScope, period: Period | None = None
) -> Json:
    """Read a scope's budget; of two, that of the day unless the other is asked for."""
    found = await budget_admin.read_budgets(opened, caller, scope)
    for one in found:
        if period in (None, one.period):
            return Json(one.shown())
    raise errors.NotFound(f"no budget '{scope}'{f' per {period}' if period else ''}")


@router.put("/{scope:path}")
async def put_budget(opened: Opened, caller: Admin, scope: BudgetScope, body: BudgetBody) -> Json:
    """Set a scope's budget of a period; what its window has spent so far counts from the start."""
    kept = await budget_admin.set_budget(
        opened,
        caller,
        scope,
        body.period,
        limit_usd=body.limit_usd,
        limit_tokens=body.limit_tokens,
        allow_unpriced=body.allow_unpriced,
    )
    return Json(kept.shown())


@router.delete("/{scope:path}")
async def delete_budget(
    opened: Opened, caller: Admin, scope: BudgetScope, period: Period | None = None
) -> Json:
    """Take a scope's budgets away, of one period or both; none is no error."""
    gone = await budget_admin.drop_budget(opened, caller, scope, period)
    return Json({"scope": scope, "deleted": [one.period for one in gone]})
