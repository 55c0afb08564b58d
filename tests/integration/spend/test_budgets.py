"""SD3: budgets over HTTP, and reservations of many workers at once."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from sqlalchemy import func, update

from shared.foundation import errors
from shared.platform.spend import reserve
from shared.platform.spend.charge import Payer
from shared.platform.spend.reserve import CallRequest, Reservation
from shared.platform.spend.table import budget, charge
from shared.platform.spend.usage import Usage
from tests.conftest import Gateway
from tests.integration.spend.conftest import json_of, metric, money, report
from workers.sweep.sweep import sweep_once

TENANT = "/v1/budgets/tenant"
BOUND = Usage(600_000, 200_000)  # 1 USD at the prices of `m`


def _request(
    gateway: Gateway, agent: str = "support", purpose: str = "enrichment", model: str = "m"
) -> CallRequest:
    return CallRequest(Payer(gateway.tenant, agent, None, purpose), model, BOUND)


async def _reserve(gateway: Gateway, *requests: CallRequest) -> list[Reservation | errors.OverBudget]:
    return await reserve.reserve(gateway.resources, gateway.tenant, requests)


async def _reserved(gateway: Gateway, request: CallRequest) -> Reservation:
    [reservation] = await _reserve(gateway, request)
    assert isinstance(reservation, Reservation), reservation
    return reservation


async def _refused(gateway: Gateway, request: CallRequest) -> str:
    [outcome] = await _reserve(gateway, request)
    assert isinstance(outcome, errors.OverBudget)
    return str(outcome)


async def _budget(gateway: Gateway, scope: str = "tenant", **limits: Any) -> dict[str, Any]:
    body = {"period": "day", **limits}
    return await json_of(gateway.client.put(f"/v1/budgets/{scope}", json=body))


@pytest.mark.parametrize(
    "limits", [{"limit_usd": 7}, {"limit_tokens": 7 * BOUND.total}, {"limit_usd": 7, "limit_tokens": 10**9}]
)
async def test_sd3_of_many_parallel_reservations_exactly_those_that_fit_are_made(
    priced_gateway: Gateway, limits: dict[str, Any]
) -> None:
    await _budget(priced_gateway, **limits)
    await _budget(priced_gateway, "agent/a1", limit_usd=100, period="month")
    requests = [_request(priced_gateway, f"a{n % 3}") for n in range(30)]

    outcomes = await asyncio.gather(*(_reserve(priced_gateway, request) for request in requests))

    assert sum(isinstance(outcome, Reservation) for [outcome] in outcomes) == 7
    balance = await json_of(priced_gateway.client.get(TENANT))
    assert balance["reserved_usd"] == 7
    assert balance["reserved_tokens"] == 7 * BOUND.total
    assert await metric(priced_gateway, "loci_budget_refusals_total", 'purpose="enrichment"') >= 23


async def test_sd3_a_batch_of_reservations_overruns_no_more_than_one_by_one(
    priced_gateway: Gateway,
) -> None:
    await _budget(priced_gateway, limit_usd=2)
    outcomes = await _reserve(priced_gateway, *(_request(priced_gateway) for _ in range(5)))
    assert [isinstance(outcome, Reservation) for outcome in outcomes] == [True, True, False, False, False]


async def test_sd3_a_reservation_is_made_in_every_budget_that_applies_or_in_none(
    priced_gateway: Gateway,
) -> None:
    await _budget(priced_gateway, limit_usd=9)
    await _budget(priced_gateway, "agent/support", limit_usd=9)
    await _budget(priced_gateway, "purpose/enrichment", limit_usd="0.5", period="month")

    refusal = await _refused(priced_gateway, _request(priced_gateway))

    assert refusal == "over budget 'purpose/enrichment' per month: 0.5 of 0.5 USD left"
    budgets = (await json_of(priced_gateway.client.get("/v1/budgets")))["results"]
    assert [(item["scope"], item["reserved_usd"]) for item in budgets] == [
        ("agent/support", 0),
        ("purpose/enrichment", 0),
        ("tenant", 0),
    ]
    await _reserved(priced_gateway, _request(priced_gateway, purpose="embedding"))


async def test_sd3_settling_replaces_the_reserved_amount_by_the_actual_one(
    priced_gateway: Gateway,
) -> None:
    await _budget(priced_gateway, limit_usd=1)
    reservation = await _reserved(priced_gateway, _request(priced_gateway))
    assert await _refused(priced_gateway, _request(priced_gateway))

    [cost] = await reserve.settle(
        priced_gateway.resources, priced_gateway.tenant, [(reservation, Usage(1000, 10, 500))]
    )

    assert cost == Decimal("0.00127")
    response = await priced_gateway.client.get(TENANT)
    assert money(response, "used_usd") == cost
    assert money(response, "remaining_usd") == 1 - cost
    assert (response.json()["used_tokens"], response.json()["reserved_tokens"]) == (1510, 0)
    assert response.json()["reserved_usd"] == 0


async def test_sd3_settling_twice_counts_once(priced_gateway: Gateway) -> None:
    await _budget(priced_gateway, limit_usd=5)
    reservation = await _reserved(priced_gateway, _request(priced_gateway))
    for used in (Usage(1000), Usage(2000)):
        await reserve.settle(priced_gateway.resources, priced_gateway.tenant, [(reservation, used)])
    assert (await json_of(priced_gateway.client.get(TENANT)))["used_tokens"] == 1000


async def test_sd3_the_reservation_of_a_refused_call_is_released(priced_gateway: Gateway) -> None:
    await _budget(priced_gateway, limit_usd=1)
    reservation = await _reserved(priced_gateway, _request(priced_gateway))
    await reserve.release(priced_gateway.resources, priced_gateway.tenant, [reservation])
    assert (await json_of(priced_gateway.client.get(TENANT)))["reserved_usd"] == 0
    await _reserved(priced_gateway, _request(priced_gateway))
    assert await report(priced_gateway) == []


async def _outlive_lease(gateway: Gateway) -> None:
    past = func.now() - timedelta(seconds=1)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as connection:
        where = (charge.c.tenant == gateway.tenant, charge.c.reserved_until.is_not(None))
        await connection.execute(update(charge).where(*where).values(reserved_until=past))


async def test_sd3_the_sweep_settles_a_killed_workers_reservation_at_its_upper_bound(
    priced_gateway: Gateway,
) -> None:
    await _budget(priced_gateway, limit_usd=5)
    expired = await _reserved(priced_gateway, _request(priced_gateway))
    await _outlive_lease(priced_gateway)
    await _reserved(priced_gateway, _request(priced_gateway))  # its worker is alive

    assert (await sweep_once(priced_gateway.resources)).expired_reservations >= 1

    balance = await json_of(priced_gateway.client.get(TENANT))
    assert (balance["used_usd"], balance["reserved_usd"]) == (1, 1)
    [row] = await report(priced_gateway)
    assert (row["charges"], row["estimated"], row["cost_usd"]) == (1, 1, 1)

    # The worker was slow and not dead: the usage that it reports at last counts.
    await reserve.settle(priced_gateway.resources, priced_gateway.tenant, [(expired, Usage(1000))])
    balance = await json_of(priced_gateway.client.get(TENANT))
    assert (balance["used_usd"], balance["reserved_usd"]) == (0.001, 1)
    assert (await report(priced_gateway))[0]["estimated"] == 0


async def test_sd3_a_model_without_a_price_is_not_called_under_a_budget_in_money_unless_allowed(
    priced_gateway: Gateway,
) -> None:
    unknown = _request(priced_gateway, model="nobody-knows")
    await _budget(priced_gateway, limit_usd=5)
    assert "the model has no price" in await _refused(priced_gateway, unknown)

    await _budget(priced_gateway, limit_usd=5, allow_unpriced=True)
    await _reserved(priced_gateway, unknown)
    await _budget(priced_gateway, limit_usd=5)
    await json_of(priced_gateway.client.put("/v1/prices/nobody-knows", json={"input": 1}))
    await _reserved(priced_gateway, unknown)


async def test_sd3_a_new_budget_counts_what_was_spent_in_its_window_before(
    priced_gateway: Gateway,
) -> None:
    settled = await _reserved(priced_gateway, _request(priced_gateway))
    await reserve.settle(priced_gateway.resources, priced_gateway.tenant, [(settled, Usage(250_000))])
    await _reserved(priced_gateway, _request(priced_gateway))

    new_budget = await _budget(priced_gateway, limit_usd=2)
    other = await _budget(priced_gateway, "agent/another", limit_usd=2)

    assert (new_budget["used_usd"], new_budget["reserved_usd"], new_budget["remaining_usd"]) == (
        0.25,
        1,
        0.75,
    )
    assert (other["used_usd"], other["reserved_usd"]) == (0, 0)
    assert await _refused(priced_gateway, _request(priced_gateway))


async def test_sd3_no_charge_is_missed_while_a_budget_is_set(priced_gateway: Gateway) -> None:
    async def spend(number: int) -> None:
        reservation = await _reserved(priced_gateway, _request(priced_gateway, f"a{number}"))
        await reserve.settle(priced_gateway.resources, priced_gateway.tenant, [(reservation, Usage(1000))])

    budget_changes = [_budget(priced_gateway, limit_tokens=10**12) for _ in range(3)]
    await asyncio.gather(*(spend(n) for n in range(20)), *budget_changes)

    balance = await json_of(priced_gateway.client.get(TENANT))
    assert (balance["used_tokens"], balance["reserved_tokens"]) == (20_000, 0)


async def test_sd3_what_agents_report_counts_and_is_never_refused(priced_gateway: Gateway) -> None:
    await _budget(priced_gateway, limit_tokens=100)
    await json_of(priced_gateway.client.post("/v1/sessions", json={"id": "s", "agent_id": "support"}), 201)
    body = {"usage_id": "u", "model": "m", "usage": {"total_tokens": 150}}
    await json_of(priced_gateway.client.post("/v1/sessions/s/spend", json=body), 201)
    balance = await json_of(priced_gateway.client.get(TENANT))
    assert (balance["used_tokens"], balance["remaining_tokens"], balance["used_ratio"]) == (150, 0, 1.5)


async def test_sd3_a_new_window_begins_empty(priced_gateway: Gateway) -> None:
    await _budget(priced_gateway, limit_usd=1)
    reservation_of_yesterday = await _reserved(priced_gateway, _request(priced_gateway))
    async with priced_gateway.resources.postgres.for_tenant(priced_gateway.tenant) as connection:
        day = timedelta(days=1)
        where = budget.c.tenant == priced_gateway.tenant
        await connection.execute(
            update(budget).where(where).values(window_started_at=budget.c.window_started_at - day)
        )
        await connection.execute(
            update(charge)
            .where(charge.c.tenant == priced_gateway.tenant)
            .values(created_at=charge.c.created_at - day)
        )
    before = await json_of(priced_gateway.client.get(TENANT))
    assert (before["used_usd"], before["reserved_usd"], before["remaining_usd"]) == (0, 0, 1)
    starts = datetime.fromisoformat(before["window_starts"])
    assert datetime.fromisoformat(before["window_ends"]) - starts == timedelta(days=1)

    await _reserved(priced_gateway, _request(priced_gateway))
    # A call of yesterday counts for yesterday, whenever its reply comes.
    await reserve.settle(
        priced_gateway.resources,
        priced_gateway.tenant,
        [(reservation_of_yesterday, Usage(1000))],
    )
    after = await json_of(priced_gateway.client.get(TENANT))
    assert (after["used_usd"], after["reserved_usd"]) == (0, 1)


async def test_sd3_a_daily_and_a_monthly_budget_exist_independently(priced_gateway: Gateway) -> None:
    await _budget(priced_gateway, limit_usd=1, period="month")
    assert (await json_of(priced_gateway.client.get(TENANT)))["period"] == "month"
    await _budget(priced_gateway, limit_usd=2)
    assert (await json_of(priced_gateway.client.get(TENANT)))["period"] == "day"
    month = await json_of(priced_gateway.client.get(TENANT, params={"period": "month"}))
    assert month["limit_usd"] == 1
    deleted = await json_of(priced_gateway.client.delete(TENANT, params={"period": "day"}))
    assert deleted == {"scope": "tenant", "deleted": ["day"]}
    assert (await priced_gateway.client.get(TENANT, params={"period": "day"})).status_code == 404
    assert (await json_of(priced_gateway.client.delete(TENANT)))["deleted"] == ["month"]
    assert (await json_of(priced_gateway.client.get("/v1/budgets")))["results"] == []


async def test_sd3_metrics_show_the_used_ratio_of_budgets_and_name_no_tenant(
    priced_gateway: Gateway,
) -> None:
    new_budget = await _budget(priced_gateway, "agent/support", limit_usd=1)
    label = f'budget="{new_budget["id"]}"'
    alerts = await metric(priced_gateway, "loci_budget_alerts")
    assert await metric(priced_gateway, "loci_budget_used_ratio", label) == 0

    reservation = await _reserved(priced_gateway, _request(priced_gateway))
    await reserve.settle(priced_gateway.resources, priced_gateway.tenant, [(reservation, Usage(800_000))])

    assert (
        await metric(priced_gateway, "loci_budget_used_ratio", label, 'scope="agent"', 'period="day"') == 0.8
    )
    assert await metric(priced_gateway, "loci_budget_alerts") == alerts + 1
    assert priced_gateway.tenant not in (await priced_gateway.client.get("/metrics")).text
    await json_of(priced_gateway.client.delete("/v1/budgets/agent/support"))
    assert label not in (await priced_gateway.client.get("/metrics")).text


@pytest.mark.parametrize(
    ("scope", "body", "field"),
    [
        ("tenant", {"period": "day"}, "limit_usd"),
        ("tenant", {"limit_usd": 1}, "period"),
        ("tenant", {"period": "week", "limit_usd": 1}, "period"),
        ("tenant", {"period": "day", "limit_usd": -1}, "limit_usd"),
        ("tenant", {"period": "day", "limit_usd": "NaN"}, "limit_usd"),
        ("tenant", {"period": "day", "limit_usd": "1e400"}, "limit_usd"),
        ("tenant", {"period": "day", "limit_usd": "0.0000000000001"}, "limit_usd"),
        ("tenant", {"period": "day", "limit_tokens": 1.5}, "limit_tokens"),
        ("tenant", {"period": "day", "limit_tokens": 10**16}, "limit_tokens"),
        ("tenant", {"period": "day", "limit_tokens": 1, "allow_unpriced": 1}, "allow_unpriced"),
        ("tenant", {"period": "day", "limit_tokens": 1, "more": 1}, "more"),
        ("nobody", {"period": "day", "limit_usd": 1}, "scope"),
        ("agent/ ", {"period": "day", "limit_usd": 1}, "agent_id"),
        ("purpose/dreaming", {"period": "day", "limit_usd": 1}, "scope"),
    ],
)
async def test_sd3_a_bad_budget_is_refused_with_its_field_and_none_is_set(
    priced_gateway: Gateway, scope: str, body: dict[str, Any], field: str
) -> None:
    response = await priced_gateway.client.put(f"/v1/budgets/{scope}", json=body)
    assert response.status_code == 422, response.text
    assert field in [error["field"] for error in response.json()["errors"]]
    assert (await json_of(priced_gateway.client.get("/v1/budgets")))["results"] == []


async def test_sd3_only_admins_set_budgets_and_bound_keys_see_only_their_own(
    priced_gateway: Gateway,
) -> None:
    await _budget(priced_gateway, limit_usd=1)
    await _budget(priced_gateway, "agent/support", limit_usd=1)
    body = {"period": "day", "limit_usd": 9}
    async with await priced_gateway.new_client(rights=["read", "write"]) as writer:
        assert (await writer.put(TENANT, json=body)).status_code == 403
        assert (await writer.delete(TENANT)).status_code == 403
    async with await priced_gateway.new_client(agent_id="support") as client:
        assert (await client.put("/v1/budgets/agent/support", json=body)).status_code == 403
        assert (await client.put("/v1/prices/m", json={"input": 1})).status_code == 403
        assert await _scopes(client) == ["agent/support"]
        assert (await client.get(TENANT)).status_code == 404
    async with await priced_gateway.new_client(user_id="ada") as users:
        assert await _scopes(users) == []
    assert await _scopes(priced_gateway.client) == ["agent/support", "tenant"]


async def _scopes(client: httpx.AsyncClient) -> list[str]:
    return [result["scope"] for result in (await json_of(client.get("/v1/budgets")))["results"]]


async def test_sd3_a_tenants_budget_does_not_apply_to_another_tenant(priced_gateway: Gateway) -> None:
    await _budget(priced_gateway, limit_usd=0)
    request = _request(priced_gateway)
    other = replace(request.payer, tenant=f"{priced_gateway.tenant}-2")
    [reservation] = await reserve.reserve(
        priced_gateway.resources, other.tenant, [replace(request, payer=other)]
    )
    assert isinstance(reservation, Reservation)
