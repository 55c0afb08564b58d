"""Spend: report the usage of an agent's own model calls, read spend reports, and set prices."""

from datetime import datetime
from decimal import Decimal
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field
from starlette.responses import Response

from services.gateway.api_model import ApiModel, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    AdminCaller,
    IdempotencyKeyDep,
    ReadCaller,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.paths import SessionId
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.spend_response_models import (
    DeletedPrice,
    Price,
    ReportedTotals,
    SessionTotals,
    SpendGroup,
)
from shared.conversation.sessions import usage as session_usage
from shared.foundation import validation
from shared.foundation.optional_fields import without_none
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.spend import budget_admin, report
from shared.platform.spend.charge import ReportedUsage, parse_reported_usage
from shared.platform.spend.price_lists import DECIMALS, MAX_PRICE, Rates
from shared.platform.spend.report import Criteria

router = authenticated_router(prefix="/v1", tags=["spend"])
_CSV: dict[str, Any] = {"content": {"text/csv": {"schema": {"type": "string"}}}}
Amount = Annotated[Decimal, Field(ge=0, le=MAX_PRICE, decimal_places=DECIMALS)]
Model = Annotated[str, Path(examples=["gpt-4o-mini"])]
OptionalFilter = Annotated[str | None, Query()]


class UsageBody(ApiModel):
    """The usage of one model call: the provider's usage object, under an id that the caller chooses."""

    model_config = example(
        {
            "usage_id": "chatcmpl-42",
            "model": "gpt-4o-mini",
            "usage": {
                "prompt_tokens": 1200,
                "completion_tokens": 80,
                "prompt_tokens_details": {"cached_tokens": 1024},
            },
        }
    )

    usage_id: str
    model: str
    usage: dict[str, Any]

    def reported_usage(self) -> ReportedUsage:
        """Return the usage to record. Raise errors.Invalid if it breaks a rule."""
        return parse_reported_usage(self.usage_id, self.model, self.usage)


class PriceBody(ApiModel):
    """A price in USD per million tokens. Without `cached`, cached tokens cost as much as input."""

    model_config = example({"input": 0.15, "output": 0.6, "cached": 0.075})

    input: Amount
    output: Amount = Decimal(0)
    cached: Amount | None = None

    def rates(self) -> Rates:
        """Return the price as rates of the tenant."""
        cached = self.input if self.cached is None else self.cached
        return Rates(self.input, self.output, cached, "tenant")


@router.post(
    "/sessions/{session_id:session}/spend", status_code=HTTPStatus.CREATED, response_model=ReportedTotals
)
async def report_usage(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: UsageBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Add a usage to the totals of a session. A repeated `usage_id` adds nothing."""
    totals = await session_usage.report_usage(
        resources, caller, session_id, body.reported_usage(), idempotency_key
    )
    return JsonResponse(totals, HTTPStatus.CREATED)


@router.get("/sessions/{session_id:session}/spend", response_model=SessionTotals)
async def read_totals(resources: ResourcesDep, caller: ReadCaller, session_id: SessionId) -> JsonResponse:
    """Read the totals of the usage that was reported for a session."""
    return JsonResponse(await session_usage.session_totals(resources, caller, session_id))


@router.get("/spend", response_model=Page[SpendGroup], responses={HTTPStatus.OK: _CSV})
async def read_report(  # noqa: PLR0913
    resources: ResourcesDep,
    caller: ReadCaller,
    group_by: Annotated[
        str | None,
        Query(description="Some of agent, session, user, purpose, model, day.", examples=["agent,day"]),
    ] = None,
    since: datetime | None = None,
    until: datetime | None = None,
    agent_id: OptionalFilter = None,
    user_id: OptionalFilter = None,
    session_id: OptionalFilter = None,
    purpose: OptionalFilter = None,
    model: OptionalFilter = None,
    format: Literal["json", "csv"] = "json",  # noqa: A002
) -> Response:
    """Read the sums of what Loci itself spent and of the usage that agents reported."""
    rights.scope(caller, Area.SPEND, Action.READ, agent_id, user_id)
    filters = without_none(
        agent_id=agent_id, user_id=user_id, session_id=session_id, purpose=purpose, model=model
    )
    since = since and validation.check_time(since, "since")
    until = until and validation.check_time(until, "until")
    groups = report.check_groups(group_by)
    rows = await report.report(resources, caller, groups, Criteria(filters, since, until))
    if format == "csv":
        return Response(report.as_csv(groups, rows), media_type="text/csv; charset=utf-8")
    return JsonResponse({"results": report.as_json(rows), "next_cursor": None})


@router.get("/prices", response_model=Page[Price])
async def list_prices(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """List the effective prices and the source of each: the tenant, the operator's file, or built in."""
    return JsonResponse({"results": await budget_admin.read_prices(resources, caller), "next_cursor": None})


@router.put("/prices/{model:path}", response_model=Price)
async def put_price(
    resources: ResourcesDep, caller: AdminCaller, model: Model, body: PriceBody
) -> JsonResponse:
    """Set the tenant's own price of a model. Earlier charges keep their cost."""
    rates = await budget_admin.set_price(resources, caller, model, body.rates())
    return JsonResponse(rates.to_json(model))


@router.delete("/prices/{model:path}", response_model=DeletedPrice)
async def delete_price(resources: ResourcesDep, caller: AdminCaller, model: Model) -> JsonResponse:
    """Delete the tenant's own price of a model. Its listed price applies, if there is one."""
    return JsonResponse(
        {"model": model, "deleted": await budget_admin.delete_price(resources, caller, model)}
    )
