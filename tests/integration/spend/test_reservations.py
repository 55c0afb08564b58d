"""SD3: reservations of model calls, by many workers at once, and what becomes of them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import func, select, update

from shared.foundation import errors
from shared.platform.resources import Resources
from shared.platform.spend import budget as budgets
from shared.platform.spend import queries, reserve
from shared.platform.spend.reserve import Reservation
from shared.platform.spend.table import charge
from shared.platform.spend.usage import Usage
from tests.conftest import Gateway
from tests.integration.spend.conftest import (
    BOUND,
    TENANT,
    call_request,
    json_of,
    metric,
    money,
    refuse_call,
    report,
    reserve_all,
    reserve_call,
    set_budget,
)
from tests.locks import wait_until_blocked
from workers.sweep.sweep import sweep_once


@pytest.mark.parametrize(
    "limits", [{"limit_usd": 7}, {"limit_tokens": 7 * BOUND.total}, {"limit_usd": 7, "limit_tokens": 10**9}]
)
async def test_sd3_of_many_parallel_reservations_exactly_those_that_fit_are_made(
    priced_gateway: Gateway, limits: dict[str, Any]
) -> None:
    await set_budget(priced_gateway, **limits)
    await set_budget(priced_gateway, "agent/a1", limit_usd=100, period="month")
    requests = [call_request(priced_gateway, f"a{n % 3}") for n in range(30)]

    outcomes = await asyncio.gather(*(reserve_all(priced_gateway, request) for request in requests))

    assert sum(isinstance(outcome, Reservation) for [outcome] in outcomes) == 7
    balance = await json_of(priced_gateway.client.get(TENANT))
    assert balance["reserved_usd"] == 7
    assert balance["reserved_tokens"] == 7 * BOUND.total
    assert await metric(priced_gateway, "loci_budget_refusals_total", 'purpose="enrichment"') >= 23


async def test_sd3_a_batch_of_reservations_overruns_no_more_than_one_by_one(
    priced_gateway: Gateway,
) -> None:
    await set_budget(priced_gateway, limit_usd=2)
    outcomes = await reserve_all(priced_gateway, *(call_request(priced_gateway) for _ in range(5)))
    assert [isinstance(outcome, Reservation) for outcome in outcomes] == [True, True, False, False, False]


async def test_sd3_a_reservation_is_made_in_every_budget_that_applies_or_in_none(
    priced_gateway: Gateway,
) -> None:
    await set_budget(priced_gateway, limit_usd=9)
    await set_budget(priced_gateway, "agent/support", limit_usd=9)
    await set_budget(priced_gateway, "purpose/enrichment", limit_usd="0.5", period="month")

    refusal = await refuse_call(priced_gateway, call_request(priced_gateway))

    assert refusal == "over budget 'purpose/enrichment' per month: 0.5 of 0.5 USD left"
    budgets = (await json_of(priced_gateway.client.get("/v1/budgets")))["results"]
    assert [(item["scope"], item["reserved_usd"]) for item in budgets] == [
        ("agent/support", 0),
        ("purpose/enrichment", 0),
        ("tenant", 0),
    ]
    await reserve_call(priced_gateway, call_request(priced_gateway, purpose="embedding"))


async def test_sd3_settling_replaces_the_reserved_amount_by_the_actual_one(
    priced_gateway: Gateway,
) -> None:
    await set_budget(priced_gateway, limit_usd=1)
    reservation = await reserve_call(priced_gateway, call_request(priced_gateway))
    assert await refuse_call(priced_gateway, call_request(priced_gateway))

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
    await set_budget(priced_gateway, limit_usd=5)
    reservation = await reserve_call(priced_gateway, call_request(priced_gateway))
    for used in (Usage(1000), Usage(2000)):
        await reserve.settle(priced_gateway.resources, priced_gateway.tenant, [(reservation, used)])
    assert (await json_of(priced_gateway.client.get(TENANT)))["used_tokens"] == 1000


async def test_sd3_the_reservation_of_a_refused_call_is_released(priced_gateway: Gateway) -> None:
    await set_budget(priced_gateway, limit_usd=1)
    reservation = await reserve_call(priced_gateway, call_request(priced_gateway))
    await reserve.release(priced_gateway.resources, priced_gateway.tenant, [reservation])
    assert (await json_of(priced_gateway.client.get(TENANT)))["reserved_usd"] == 0
    assert await _count_charges(priced_gateway) == 0, "the sweep finds nothing to settle"
    await reserve_call(priced_gateway, call_request(priced_gateway))
    assert await report(priced_gateway) == []


async def _count_charges(gateway: Gateway) -> int:
    of_tenant = select(func.count()).where(charge.c.tenant == gateway.tenant)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return int(await tx.scalar(of_tenant) or 0)


async def _outlive_lease(gateway: Gateway) -> None:
    past = func.now() - timedelta(seconds=1)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        where = (charge.c.tenant == gateway.tenant, charge.c.reserved_until.is_not(None))
        await tx.execute(update(charge).where(*where).values(reserved_until=past))


async def test_sd3_the_sweep_settles_a_killed_workers_reservation_at_its_upper_bound(
    gateway_with_model: Gateway,
) -> None:
    """The sweep covers all tenants, so the database is the test's own."""
    gateway = gateway_with_model
    await set_budget(gateway, limit_usd=5)
    expired = await reserve_call(gateway, call_request(gateway))
    await _outlive_lease(gateway)
    await reserve_call(gateway, call_request(gateway))  # its worker is alive

    assert (await sweep_once(gateway.resources)).expired_reservations == 1

    balance = await json_of(gateway.client.get(TENANT))
    assert (balance["used_usd"], balance["reserved_usd"]) == (1, 1)
    [row] = await report(gateway)
    assert (row["charges"], row["estimated"], row["cost_usd"]) == (1, 1, 1)

    # The worker was slow and not dead: the usage that it reports at last counts.
    await reserve.settle(gateway.resources, gateway.tenant, [(expired, Usage(1000))])
    balance = await json_of(gateway.client.get(TENANT))
    assert (balance["used_usd"], balance["reserved_usd"]) == (0.001, 1)
    assert (await report(gateway))[0]["estimated"] == 0


async def test_sd3_no_charge_is_missed_while_a_budget_is_set(priced_gateway: Gateway) -> None:
    async def spend(number: int) -> None:
        reservation = await reserve_call(priced_gateway, call_request(priced_gateway, f"a{number}"))
        await reserve.settle(priced_gateway.resources, priced_gateway.tenant, [(reservation, Usage(1000))])

    budget_changes = [set_budget(priced_gateway, limit_tokens=10**12) for _ in range(3)]
    await asyncio.gather(*(spend(n) for n in range(20)), *budget_changes)

    balance = await json_of(priced_gateway.client.get(TENANT))
    assert (balance["used_tokens"], balance["reserved_tokens"]) == (20_000, 0)


async def test_sd3_a_tenants_budget_does_not_apply_to_another_tenant(priced_gateway: Gateway) -> None:
    await set_budget(priced_gateway, limit_usd=0)
    request = call_request(priced_gateway)
    other = replace(request.payer, tenant=f"{priced_gateway.tenant}-2")
    [reservation] = await reserve.reserve(
        priced_gateway.resources, other.tenant, [replace(request, payer=other)]
    )
    assert isinstance(reservation, Reservation)


Booking = Callable[[Resources, str, Reservation], Awaitable[Any]]


def _settle_expired(resources: Resources, tenant: str, _: Reservation) -> Awaitable[Any]:
    return reserve.settle_expired(resources, tenant)


def _settle(resources: Resources, tenant: str, reservation: Reservation) -> Awaitable[Any]:
    return reserve.settle(resources, tenant, [(reservation, Usage(1))])


def _release(resources: Resources, tenant: str, reservation: Reservation) -> Awaitable[Any]:
    return reserve.release(resources, tenant, [reservation])


def _reserve(resources: Resources, tenant: str, _: Reservation) -> Awaitable[Any]:
    return reserve.reserve(resources, tenant, [])


@pytest.mark.parametrize("book", [_reserve, _settle, _release, _settle_expired])
async def test_sd3_whoever_books_waits_while_a_budget_is_set(priced_gateway: Gateway, book: Booking) -> None:
    resources, tenant = priced_gateway.resources, priced_gateway.tenant
    reservation = await reserve_call(priced_gateway, call_request(priced_gateway))
    async with resources.postgres.for_tenant(tenant) as setting:
        await queries.lock_ledger(setting, exclusive=True)
        booking = asyncio.ensure_future(book(resources, tenant, reservation))
        await wait_until_blocked(setting, booking)
    await booking


async def test_sd3_a_charge_that_was_settled_is_not_released(priced_gateway: Gateway) -> None:
    await set_budget(priced_gateway, limit_usd=5)
    settled = await reserve_call(priced_gateway, call_request(priced_gateway))
    running = await reserve_call(priced_gateway, call_request(priced_gateway))
    resources, tenant = priced_gateway.resources, priced_gateway.tenant
    await reserve.settle(resources, tenant, [(settled, Usage(1000))])
    await reserve.release(resources, tenant, [settled, running])
    balance = await json_of(priced_gateway.client.get(TENANT))
    assert (balance["used_usd"], balance["reserved_usd"]) == (0.001, 0)


async def test_sd3_a_lost_reply_counts_as_its_upper_bound(priced_gateway: Gateway) -> None:
    await set_budget(priced_gateway, limit_usd=5)
    reservation = await reserve_call(priced_gateway, call_request(priced_gateway))
    resources, tenant = priced_gateway.resources, priced_gateway.tenant
    assert await reserve.settle(resources, tenant, [(reservation, None)]) == [Decimal(1)]
    [row] = await report(priced_gateway)
    assert (row["estimated"], row["cost_usd"]) == (1, 1)


async def test_sd3_a_refused_call_may_be_tried_when_the_window_ends_and_after_a_second_at_least(
    priced_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_budget(priced_gateway, limit_usd=0)
    for ends_in, expected in ((60.0, 60.0), (-5.0, 1.0)):
        ends_at = datetime.now(UTC) + timedelta(seconds=ends_in)
        monkeypatch.setattr(budgets.Budget, "window_ends_at", ends_at)
        [outcome] = await reserve_all(priced_gateway, call_request(priced_gateway))
        assert isinstance(outcome, errors.OverBudget)
        assert expected - 5 < outcome.retry_after <= expected
        if ends_in < 0:
            assert outcome.retry_after == expected


async def test_sd3_the_fleet_counts_the_spend_of_each_call_once(priced_gateway: Gateway) -> None:
    model = f"m-{priced_gateway.tenant}"
    priced = {"input": 1, "output": 2, "cached": 0.5}
    await json_of(priced_gateway.client.put(f"/v1/prices/{model}", json=priced))
    resources, tenant = priced_gateway.resources, priced_gateway.tenant
    requests = [call_request(priced_gateway, model=model) for _ in range(3)]
    requests += [call_request(priced_gateway, model=f"{model}-unpriced")]
    outcomes = await reserve_all(priced_gateway, *requests)
    first, second, third, unpriced = (item for item in outcomes if isinstance(item, Reservation))
    assert (unpriced.max_cost, first.max_cost) == (None, Decimal(1))
    await reserve.settle(resources, tenant, [(first, None)])
    usage = Usage(1_000_000, 500_000, 2_000_000)  # 1 + 1 + 1 USD
    settled = [(reservation, usage) for reservation in (first, second, third, unpriced)]
    assert await reserve.settle(resources, tenant, settled) == [3, 3, 3, None]
    label = f'model="{model}"'
    assert await metric(priced_gateway, "loci_spend_cost_usd", label) == 1 + 3 + 3, "the estimate stays"
    tokens = {
        kind: await metric(priced_gateway, "loci_spend_tokens", label, f'type="{kind}"')
        for kind in ("input", "output", "cached")
    }
    assert tokens == {"input": 2_600_000, "output": 1_200_000, "cached": 4_000_000}
    label = f'model="{model}-unpriced"'
    assert await metric(priced_gateway, "loci_spend_cost_usd", label) == 0
    assert await metric(priced_gateway, "loci_spend_tokens", label, 'type="input"') == 1_000_000
