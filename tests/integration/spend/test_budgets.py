"""SD3: budgets over HTTP."""

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from shared.platform.spend import reserve
from shared.platform.spend.table import budget, charge
from shared.platform.spend.usage import Usage
from tests.conftest import Gateway
from tests.integration.spend.conftest import (
    TENANT,
    call_request,
    json_of,
    metric,
    refuse_call,
    reserve_call,
    set_budget,
)


async def test_sd3_a_model_without_a_price_is_not_called_under_a_budget_in_money_unless_allowed(
    priced_gateway: Gateway,
) -> None:
    unknown = call_request(priced_gateway, model="nobody-knows")
    await set_budget(priced_gateway, limit_usd=5)
    assert "the model has no price" in await refuse_call(priced_gateway, unknown)

    await set_budget(priced_gateway, limit_usd=5, allow_unpriced=True)
    await reserve_call(priced_gateway, unknown)
    await set_budget(priced_gateway, limit_usd=5)
    await json_of(priced_gateway.client.put("/v1/prices/nobody-knows", json={"input": 1}))
    await reserve_call(priced_gateway, unknown)


async def test_sd3_a_new_budget_counts_what_was_spent_in_its_window_before(
    priced_gateway: Gateway,
) -> None:
    settled = await reserve_call(priced_gateway, call_request(priced_gateway))
    await reserve.settle(priced_gateway.resources, priced_gateway.tenant, [(settled, Usage(250_000))])
    await reserve_call(priced_gateway, call_request(priced_gateway))

    new_budget = await set_budget(priced_gateway, limit_usd=2)
    other = await set_budget(priced_gateway, "agent/another", limit_usd=2)

    assert (new_budget["used_usd"], new_budget["reserved_usd"], new_budget["remaining_usd"]) == (
        0.25,
        1,
        0.75,
    )
    assert (other["used_usd"], other["reserved_usd"]) == (0, 0)
    assert await refuse_call(priced_gateway, call_request(priced_gateway))


async def test_sd3_what_agents_report_counts_and_is_never_refused(priced_gateway: Gateway) -> None:
    await set_budget(priced_gateway, limit_tokens=100)
    await json_of(priced_gateway.client.post("/v1/sessions", json={"id": "s", "agent_id": "support"}), 201)
    body = {"usage_id": "u", "model": "m", "usage": {"total_tokens": 150}}
    await json_of(priced_gateway.client.post("/v1/sessions/s/spend", json=body), 201)
    balance = await json_of(priced_gateway.client.get(TENANT))
    assert (balance["used_tokens"], balance["remaining_tokens"], balance["used_ratio"]) == (150, 0, 1.5)


async def test_sd3_a_new_window_begins_empty(priced_gateway: Gateway) -> None:
    await set_budget(priced_gateway, limit_usd=1)
    reservation_of_yesterday = await reserve_call(priced_gateway, call_request(priced_gateway))
    async with priced_gateway.resources.postgres.for_tenant(priced_gateway.tenant) as tx:
        day = timedelta(days=1)
        where = budget.c.tenant == priced_gateway.tenant
        await tx.execute(
            update(budget).where(where).values(window_started_at=budget.c.window_started_at - day)
        )
        await tx.execute(
            update(charge)
            .where(charge.c.tenant == priced_gateway.tenant)
            .values(created_at=charge.c.created_at - day)
        )
    before = await json_of(priced_gateway.client.get(TENANT))
    assert (before["used_usd"], before["reserved_usd"], before["remaining_usd"]) == (0, 0, 1)
    starts = datetime.fromisoformat(before["window_starts"])
    assert datetime.fromisoformat(before["window_ends"]) - starts == timedelta(days=1)

    await reserve_call(priced_gateway, call_request(priced_gateway))
    # A call of yesterday counts for yesterday, whenever its reply comes.
    await reserve.settle(
        priced_gateway.resources,
        priced_gateway.tenant,
        [(reservation_of_yesterday, Usage(1000))],
    )
    after = await json_of(priced_gateway.client.get(TENANT))
    assert (after["used_usd"], after["reserved_usd"]) == (0, 1)


async def test_sd3_a_daily_and_a_monthly_budget_exist_independently(priced_gateway: Gateway) -> None:
    await set_budget(priced_gateway, limit_usd=1, period="month")
    assert (await json_of(priced_gateway.client.get(TENANT)))["period"] == "month"
    await set_budget(priced_gateway, limit_usd=2)
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
    new_budget = await set_budget(priced_gateway, "agent/support", limit_usd=1)
    label = f'budget="{new_budget["id"]}"'
    alerts = await metric(priced_gateway, "loci_budget_alerts")
    assert await metric(priced_gateway, "loci_budget_used_ratio", label) == 0

    reservation = await reserve_call(priced_gateway, call_request(priced_gateway))
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
    await set_budget(priced_gateway, limit_usd=1)
    await set_budget(priced_gateway, "agent/support", limit_usd=1)
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
