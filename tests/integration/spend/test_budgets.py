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
from tests.integration.spend.conftest import metric, money, report, told
from workers.sweep.sweep import sweep_once

TENANT = "/v1/budgets/tenant"
BOUND = Usage(600_000, 200_000)  # 1 USD at the prices of `m`


def _wish(
    house: Gateway, agent: str = "support", purpose: str = "enrichment", model: str = "m"
) -> CallRequest:
    return CallRequest(Payer(house.tenant, agent, None, purpose), model, BOUND)


async def _reserve(house: Gateway, *wishes: CallRequest) -> list[Reservation | errors.OverBudget]:
    return await reserve.reserve(house.resources, house.tenant, wishes)


async def _held(house: Gateway, wish: CallRequest) -> Reservation:
    [held] = await _reserve(house, wish)
    assert isinstance(held, Reservation), held
    return held


async def _refused(house: Gateway, wish: CallRequest) -> str:
    [refused] = await _reserve(house, wish)
    assert isinstance(refused, errors.OverBudget)
    return str(refused)


async def _budget(house: Gateway, scope: str = "tenant", **limits: Any) -> dict[str, Any]:
    body = {"period": "day", **limits}
    return await told(house.client.put(f"/v1/budgets/{scope}", json=body))


@pytest.mark.parametrize(
    "limits", [{"limit_usd": 7}, {"limit_tokens": 7 * BOUND.total}, {"limit_usd": 7, "limit_tokens": 10**9}]
)
async def test_sd3_of_many_parallel_reservations_exactly_those_that_fit_are_made(
    bookkeeper: Gateway, limits: dict[str, Any]
) -> None:
    await _budget(bookkeeper, **limits)
    await _budget(bookkeeper, "agent/a1", limit_usd=100, period="month")
    wishes = [_wish(bookkeeper, f"a{n % 3}") for n in range(30)]

    answers = await asyncio.gather(*(_reserve(bookkeeper, wish) for wish in wishes))

    assert sum(isinstance(one, Reservation) for [one] in answers) == 7
    standing = await told(bookkeeper.client.get(TENANT))
    assert standing["reserved_usd"] == 7
    assert standing["reserved_tokens"] == 7 * BOUND.total
    assert await metric(bookkeeper, "loci_budget_refusals_total", 'purpose="enrichment"') >= 23


async def test_sd3_a_batch_of_reservations_overruns_no_more_than_one_by_one(bookkeeper: Gateway) -> None:
    await _budget(bookkeeper, limit_usd=2)
    judged = await _reserve(bookkeeper, *(_wish(bookkeeper) for _ in range(5)))
    assert [isinstance(one, Reservation) for one in judged] == [True, True, False, False, False]


async def test_sd3_a_reservation_is_made_in_every_budget_that_applies_or_in_none(bookkeeper: Gateway) -> None:
    await _budget(bookkeeper, limit_usd=9)
    await _budget(bookkeeper, "agent/support", limit_usd=9)
    await _budget(bookkeeper, "purpose/enrichment", limit_usd="0.5", period="month")

    refusal = await _refused(bookkeeper, _wish(bookkeeper))

    assert refusal == "over budget 'purpose/enrichment' per month: 0.5 of 0.5 USD left"
    listed = (await told(bookkeeper.client.get("/v1/budgets")))["results"]
    assert [(one["scope"], one["reserved_usd"]) for one in listed] == [
        ("agent/support", 0),
        ("purpose/enrichment", 0),
        ("tenant", 0),
    ]
    await _held(bookkeeper, _wish(bookkeeper, purpose="embedding"))


async def test_sd3_what_is_settled_takes_the_place_of_what_was_reserved(bookkeeper: Gateway) -> None:
    await _budget(bookkeeper, limit_usd=1)
    held = await _held(bookkeeper, _wish(bookkeeper))
    assert await _refused(bookkeeper, _wish(bookkeeper))

    [cost] = await reserve.settle(bookkeeper.resources, bookkeeper.tenant, [(held, Usage(1000, 10, 500))])

    assert cost == Decimal("0.00127")
    answer = await bookkeeper.client.get(TENANT)
    assert money(answer, "used_usd") == cost
    assert money(answer, "remaining_usd") == 1 - cost
    assert (answer.json()["used_tokens"], answer.json()["reserved_tokens"]) == (1510, 0)
    assert answer.json()["reserved_usd"] == 0


async def test_sd3_settling_twice_counts_once(bookkeeper: Gateway) -> None:
    await _budget(bookkeeper, limit_usd=5)
    held = await _held(bookkeeper, _wish(bookkeeper))
    for used in (Usage(1000), Usage(2000)):
        await reserve.settle(bookkeeper.resources, bookkeeper.tenant, [(held, used)])
    assert (await told(bookkeeper.client.get(TENANT)))["used_tokens"] == 1000


async def test_sd3_a_refused_call_gives_its_reservation_back(bookkeeper: Gateway) -> None:
    await _budget(bookkeeper, limit_usd=1)
    held = await _held(bookkeeper, _wish(bookkeeper))
    await reserve.release(bookkeeper.resources, bookkeeper.tenant, [held])
    assert (await told(bookkeeper.client.get(TENANT)))["reserved_usd"] == 0
    await _held(bookkeeper, _wish(bookkeeper))
    assert await report(bookkeeper) == []


async def _outlive_lease(house: Gateway) -> None:
    past = func.now() - timedelta(seconds=1)
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        mine = (charge.c.tenant == house.tenant, charge.c.reserved_until.is_not(None))
        await connection.execute(update(charge).where(*mine).values(reserved_until=past))


async def test_sd3_a_killed_workers_reservation_is_settled_at_its_bound_by_the_sweep(
    bookkeeper: Gateway,
) -> None:
    await _budget(bookkeeper, limit_usd=5)
    lost = await _held(bookkeeper, _wish(bookkeeper))
    await _outlive_lease(bookkeeper)
    await _held(bookkeeper, _wish(bookkeeper))  # its worker is alive

    assert (await sweep_once(bookkeeper.resources)).expired_reservations >= 1

    standing = await told(bookkeeper.client.get(TENANT))
    assert (standing["used_usd"], standing["reserved_usd"]) == (1, 1)
    [row] = await report(bookkeeper)
    assert (row["charges"], row["estimated"], row["cost_usd"]) == (1, 1, 1)

    # The worker was not dead but slow: what it tells at last is what counts.
    await reserve.settle(bookkeeper.resources, bookkeeper.tenant, [(lost, Usage(1000))])
    standing = await told(bookkeeper.client.get(TENANT))
    assert (standing["used_usd"], standing["reserved_usd"]) == (0.001, 1)
    assert (await report(bookkeeper))[0]["estimated"] == 0


async def test_sd3_a_model_without_a_price_is_not_called_under_a_budget_in_money_unless_allowed(
    bookkeeper: Gateway,
) -> None:
    unknown = _wish(bookkeeper, model="nobody-knows")
    await _budget(bookkeeper, limit_usd=5)
    assert "the model has no price" in await _refused(bookkeeper, unknown)

    await _budget(bookkeeper, limit_usd=5, allow_unpriced=True)
    await _held(bookkeeper, unknown)
    await _budget(bookkeeper, limit_usd=5)
    await told(bookkeeper.client.put("/v1/prices/nobody-knows", json={"input": 1}))
    await _held(bookkeeper, unknown)


async def test_sd3_a_budget_counts_what_its_window_had_spent_before_it_was_set(bookkeeper: Gateway) -> None:
    settled = await _held(bookkeeper, _wish(bookkeeper))
    await reserve.settle(bookkeeper.resources, bookkeeper.tenant, [(settled, Usage(250_000))])
    await _held(bookkeeper, _wish(bookkeeper))

    set_ = await _budget(bookkeeper, limit_usd=2)
    other = await _budget(bookkeeper, "agent/another", limit_usd=2)

    assert (set_["used_usd"], set_["reserved_usd"], set_["remaining_usd"]) == (0.25, 1, 0.75)
    assert (other["used_usd"], other["reserved_usd"]) == (0, 0)
    assert await _refused(bookkeeper, _wish(bookkeeper))


async def test_sd3_while_a_budget_is_set_no_charge_slips_by_uncounted(bookkeeper: Gateway) -> None:
    async def spend(place: int) -> None:
        held = await _held(bookkeeper, _wish(bookkeeper, f"a{place}"))
        await reserve.settle(bookkeeper.resources, bookkeeper.tenant, [(held, Usage(1000))])

    set_ = [_budget(bookkeeper, limit_tokens=10**12) for _ in range(3)]
    await asyncio.gather(*(spend(n) for n in range(20)), *set_)

    standing = await told(bookkeeper.client.get(TENANT))
    assert (standing["used_tokens"], standing["reserved_tokens"]) == (20_000, 0)


async def test_sd3_what_agents_report_counts_and_is_never_refused(bookkeeper: Gateway) -> None:
    await _budget(bookkeeper, limit_tokens=100)
    await told(bookkeeper.client.post("/v1/sessions", json={"id": "s", "agent_id": "support"}), 201)
    body = {"usage_id": "u", "model": "m", "usage": {"total_tokens": 150}}
    await told(bookkeeper.client.post("/v1/sessions/s/spend", json=body), 201)
    standing = await told(bookkeeper.client.get(TENANT))
    assert (standing["used_tokens"], standing["remaining_tokens"], standing["used_ratio"]) == (150, 0, 1.5)


async def test_sd3_the_window_turns_and_begins_empty(bookkeeper: Gateway) -> None:
    await _budget(bookkeeper, limit_usd=1)
    yesterdays = await _held(bookkeeper, _wish(bookkeeper))
    async with bookkeeper.resources.postgres.for_tenant(bookkeeper.tenant) as connection:
        day = timedelta(days=1)
        mine = budget.c.tenant == bookkeeper.tenant
        await connection.execute(
            update(budget).where(mine).values(window_started_at=budget.c.window_started_at - day)
        )
        await connection.execute(
            update(charge)
            .where(charge.c.tenant == bookkeeper.tenant)
            .values(created_at=charge.c.created_at - day)
        )
    before = await told(bookkeeper.client.get(TENANT))
    assert (before["used_usd"], before["reserved_usd"], before["remaining_usd"]) == (0, 0, 1)
    starts = datetime.fromisoformat(before["window_starts"])
    assert datetime.fromisoformat(before["window_ends"]) - starts == timedelta(days=1)

    await _held(bookkeeper, _wish(bookkeeper))
    # What was asked yesterday is yesterday's, whenever it is answered.
    await reserve.settle(bookkeeper.resources, bookkeeper.tenant, [(yesterdays, Usage(1000))])
    after = await told(bookkeeper.client.get(TENANT))
    assert (after["used_usd"], after["reserved_usd"]) == (0, 1)


async def test_sd3_a_day_and_a_month_stand_side_by_side(bookkeeper: Gateway) -> None:
    await _budget(bookkeeper, limit_usd=1, period="month")
    assert (await told(bookkeeper.client.get(TENANT)))["period"] == "month"
    await _budget(bookkeeper, limit_usd=2)
    assert (await told(bookkeeper.client.get(TENANT)))["period"] == "day"
    month = await told(bookkeeper.client.get(TENANT, params={"period": "month"}))
    assert month["limit_usd"] == 1
    gone = await told(bookkeeper.client.delete(TENANT, params={"period": "day"}))
    assert gone == {"scope": "tenant", "deleted": ["day"]}
    assert (await bookkeeper.client.get(TENANT, params={"period": "day"})).status_code == 404
    assert (await told(bookkeeper.client.delete(TENANT)))["deleted"] == ["month"]
    assert (await told(bookkeeper.client.get("/v1/budgets")))["results"] == []


async def test_sd3_metrics_tell_how_full_budgets_are_and_name_no_tenant(bookkeeper: Gateway) -> None:
    set_ = await _budget(bookkeeper, "agent/support", limit_usd=1)
    mine = f'budget="{set_["id"]}"'
    alerts = await metric(bookkeeper, "loci_budget_alerts")
    assert await metric(bookkeeper, "loci_budget_used_ratio", mine) == 0

    held = await _held(bookkeeper, _wish(bookkeeper))
    await reserve.settle(bookkeeper.resources, bookkeeper.tenant, [(held, Usage(800_000))])

    assert await metric(bookkeeper, "loci_budget_used_ratio", mine, 'scope="agent"', 'period="day"') == 0.8
    assert await metric(bookkeeper, "loci_budget_alerts") == alerts + 1
    assert bookkeeper.tenant not in (await bookkeeper.client.get("/metrics")).text
    await told(bookkeeper.client.delete("/v1/budgets/agent/support"))
    assert mine not in (await bookkeeper.client.get("/metrics")).text


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
    bookkeeper: Gateway, scope: str, body: dict[str, Any], field: str
) -> None:
    answer = await bookkeeper.client.put(f"/v1/budgets/{scope}", json=body)
    assert answer.status_code == 422, answer.text
    assert field in [one["field"] for one in answer.json()["errors"]]
    assert (await told(bookkeeper.client.get("/v1/budgets")))["results"] == []


async def test_sd3_budgets_are_set_by_admins_and_seen_by_bound_keys_as_far_as_they_concern_them(
    bookkeeper: Gateway,
) -> None:
    await _budget(bookkeeper, limit_usd=1)
    await _budget(bookkeeper, "agent/support", limit_usd=1)
    body = {"period": "day", "limit_usd": 9}
    async with await bookkeeper.another(rights=["read", "write"]) as writer:
        assert (await writer.put(TENANT, json=body)).status_code == 403
        assert (await writer.delete(TENANT)).status_code == 403
    async with await bookkeeper.another(agent_id="support") as bound:
        assert (await bound.put("/v1/budgets/agent/support", json=body)).status_code == 403
        assert (await bound.put("/v1/prices/m", json={"input": 1})).status_code == 403
        assert await _scopes(bound) == ["agent/support"]
        assert (await bound.get(TENANT)).status_code == 404
    async with await bookkeeper.another(user_id="ada") as users:
        assert await _scopes(users) == []
    assert await _scopes(bookkeeper.client) == ["agent/support", "tenant"]


async def _scopes(client: httpx.AsyncClient) -> list[str]:
    return [one["scope"] for one in (await told(client.get("/v1/budgets")))["results"]]


async def test_sd3_one_tenants_budget_is_none_of_anothers_business(bookkeeper: Gateway) -> None:
    await _budget(bookkeeper, limit_usd=0)
    wish = _wish(bookkeeper)
    other = replace(wish.payer, tenant=f"{bookkeeper.tenant}-2")
    [held] = await reserve.reserve(bookkeeper.resources, other.tenant, [replace(wish, payer=other)])
    assert isinstance(held, Reservation)
