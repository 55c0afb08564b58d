"""SD4: spend by agent, session, user, purpose, model and day, as JSON, CSV and a table."""

import csv
import io
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, update

from services.commands import spend
from shared.foundation import config
from shared.platform.spend.report import Criteria, check_groups
from shared.platform.spend.table import charge
from tests.conftest import Gateway, running_gateway
from tests.integration.spend.conftest import json_of, money, report


async def _report_usage(gateway: Gateway, session: str, number: int, **more: Any) -> None:
    usage = {"prompt_tokens": 100 * number, "completion_tokens": number}
    body = {"usage_id": f"u{number}", "model": "m", "usage": usage} | more
    await json_of(gateway.client.post(f"/v1/sessions/{session}/spend", json=body), 201)


async def _open(gateway: Gateway, session: str, agent: str, user: str | None = None) -> None:
    body = {"id": session, "agent_id": agent, "user_id": user}
    await json_of(gateway.client.post("/v1/sessions", json=body), 201)


@pytest.mark.parametrize("seed", range(3))
async def test_sd4_every_reports_sums_are_those_of_the_sessions(priced_gateway: Gateway, seed: int) -> None:
    """The sums by session are those of the sessions, and the totals are the same by every group."""
    rng = random.Random(seed)
    sessions = [f"s{n}" for n in range(4)]
    for name in sessions:
        await _open(priced_gateway, name, f"a{rng.randrange(2)}", rng.choice([None, "ada"]))
    for number in range(40):
        await _report_usage(
            priced_gateway, rng.choice(sessions), number, model=rng.choice(["m", "e", "unknown"])
        )

    by_session = {row["session_id"]: row for row in await report(priced_gateway, "session")}
    for name in sessions:
        response = await priced_gateway.client.get(f"/v1/sessions/{name}/spend")
        totals, row = response.json(), by_session[name]
        kinds = ("input_tokens", "output_tokens", "cached_tokens", "cost_usd")
        assert [totals[f"total_{kind}"] for kind in kinds] == [row[kind] for kind in kinds]
        assert totals["unpriced"] == row["unpriced"]
    total = await _summed(priced_gateway)
    for groups in ("agent", "session", "user", "purpose", "model", "day", "agent,model,day"):
        assert await _summed(priced_gateway, groups) == total


async def _summed(gateway: Gateway, groups: str = "") -> tuple[Any, ...]:
    params = {"group_by": groups, "format": "csv"}
    response = await gateway.client.get("/v1/spend", params=params)
    rows = list(csv.DictReader(io.StringIO(response.text)))
    counts = [sum(int(row[name]) for row in rows) for name in ("charges", "input_tokens", "unpriced")]
    return (*counts, sum(Decimal(row["cost_usd"] or 0) for row in rows))


async def test_sd4_json_and_csv_have_the_same_numbers_with_every_digit(
    priced_gateway: Gateway,
) -> None:
    await _open(priced_gateway, "s", "=cmd")
    await _report_usage(priced_gateway, "s", 7)
    params = {"group_by": "agent,model"}
    as_json = await priced_gateway.client.get("/v1/spend", params=params)
    as_csv = await priced_gateway.client.get("/v1/spend", params=params | {"format": "csv"})
    assert money(as_json, "cost_usd") == Decimal("0.000714")
    assert as_csv.headers["content-type"].startswith("text/csv")
    # A name that a spreadsheet would execute as a formula is written as a text.
    assert as_csv.text.splitlines() == [
        "agent_id,model,charges,input_tokens,output_tokens,cached_tokens,cost_usd,unpriced,estimated",
        "'=cmd,m,1,700,7,0,0.000714,0,0",
    ]


async def test_sd4_reports_are_grouped_by_utc_days_and_limited_to_a_time_range(
    priced_gateway: Gateway,
) -> None:
    await _open(priced_gateway, "s", "support")
    await _report_usage(priced_gateway, "s", 1)
    async with priced_gateway.resources.postgres.for_tenant(priced_gateway.tenant) as tx:
        where = charge.c.tenant == priced_gateway.tenant
        before = func.now() - timedelta(days=2)
        await tx.execute(update(charge).where(where).values(created_at=before))
    await _report_usage(priced_gateway, "s", 2)

    today = datetime.now(UTC).date()
    days = {row["day"]: row["input_tokens"] for row in await report(priced_gateway, "day")}
    assert days == {str(today): 200, str(today - timedelta(days=2)): 100}
    since = str(today - timedelta(days=1))
    assert [row["input_tokens"] for row in await report(priced_gateway, since=since)] == [200]
    assert [row["input_tokens"] for row in await report(priced_gateway, until=since)] == [100]
    assert await report(priced_gateway, agent_id="nobody") == []


async def test_sd4_a_bound_key_sees_its_own_spend_only(priced_gateway: Gateway) -> None:
    for session, agent, user in (("s1", "a1", "ada"), ("s2", "a1", "bob"), ("s3", "a2", "ada")):
        await _open(priced_gateway, session, agent, user)
        await _report_usage(priced_gateway, session, 1)
    for bindings, session_ids in (
        ({"agent_id": "a1"}, ["s1", "s2"]),
        ({"user_id": "ada"}, ["s1", "s3"]),
        ({"agent_id": "a2", "user_id": "bob"}, []),
    ):
        async with await priced_gateway.new_client(**bindings) as client:
            response = await json_of(client.get("/v1/spend", params={"group_by": "session"}))
            assert sorted(row["session_id"] for row in response["results"]) == session_ids
            other = dict.fromkeys(bindings, "another")
            assert (await client.get("/v1/spend", params=other)).status_code == 403


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"group_by": "agent,weekday"}, "group_by"),
        ({"since": "yesterday"}, "since"),
        ({"until": "0001-01-01"}, "until"),
        ({"format": "xml"}, "format"),
        ({"agent_id": " "}, "agent_id"),
    ],
)
async def test_sd4_an_invalid_report_request_is_refused_with_its_field(
    priced_gateway: Gateway, params: dict[str, str], field: str
) -> None:
    response = await priced_gateway.client.get("/v1/spend", params=params)
    assert response.status_code == 422, response.text
    assert field in [error["field"] for error in response.json()["errors"]]


async def test_sd4_the_command_prints_a_table_of_spend_and_budgets(
    make_settings: Callable[..., config.Settings],
    prices: Path,
    tenant: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = make_settings(prices_file=prices)
    async with running_gateway(settings, tenant) as gateway:
        await _open(gateway, "s", "support")
        await _report_usage(gateway, "s", 7)
        await json_of(gateway.client.put("/v1/budgets/tenant", json={"period": "day", "limit_usd": 1}))
        groups = check_groups("agent,model")
        rows, budgets = await spend._read(gateway.resources, tenant, groups, Criteria({}))
    monkeypatch.setenv("COLUMNS", "200")
    spend.print_report(groups, rows, budgets)
    out = capsys.readouterr().out
    for word in ("support", "0.000714", "cost usd", "tenant", "day"):
        assert word in out


async def test_sd1_a_tenants_own_price_applies_to_its_later_calls_only(
    priced_gateway: Gateway,
) -> None:
    await _open(priced_gateway, "s", "support")
    await _report_usage(priced_gateway, "s", 1)
    price = {"input": "0.000000000001", "output": 3}
    put = await priced_gateway.client.put("/v1/prices/m", json=price)
    assert money(put, "input") == money(put, "cached") == Decimal("0.000000000001")
    await _report_usage(priced_gateway, "s", 2)

    response = await priced_gateway.client.get("/v1/sessions/s/spend")
    exact = Decimal("0.000102") + (200 * Decimal("0.000000000001") + 2 * 3) / 1_000_000
    assert money(response, "total_cost_usd") == exact
    async with await priced_gateway.new_client(f"{priced_gateway.tenant}-2") as other:
        assert await _source(other) == "file"
    assert await _source(priced_gateway.client) == "tenant"
    assert (await json_of(priced_gateway.client.delete("/v1/prices/m")))["deleted"] is True
    assert (await json_of(priced_gateway.client.delete("/v1/prices/m")))["deleted"] is False
    assert await _source(priced_gateway.client) == "file"


async def test_sd1_a_tenants_price_of_a_pattern_applies_to_every_model_that_begins_like_it(
    priced_gateway: Gateway,
) -> None:
    await _open(priced_gateway, "s", "support")
    await json_of(priced_gateway.client.put("/v1/prices/own-*", json={"input": 2}))
    for model, cost in (("own-large", Decimal("0.0002")), ("ow", None), ("large-own-", None)):
        usage = {"usage_id": model, "model": model, "usage": {"prompt_tokens": 100, "completion_tokens": 0}}
        response = await priced_gateway.client.post("/v1/sessions/s/spend", json=usage)
        assert response.is_success, response.text
        booked = response.json()["charge"]["cost_usd"]
        assert (None if booked is None else Decimal(str(booked))) == cost, model
    assert await _source(priced_gateway.client, "own-*") == "tenant"


async def _source(client: Any, model: str = "m") -> str:
    listed = (await json_of(client.get("/v1/prices")))["results"]
    return next(str(result["source"]) for result in listed if result["model"] == model)


@pytest.mark.parametrize(
    ("model", "body", "field"),
    [
        ("m", {"input": -1}, "input"),
        ("m", {"input": "Infinity"}, "input"),
        ("m", {"input": 10**7}, "input"),
        ("m", {"input": "0.0000000000001"}, "input"),
        ("m", {"output": 1}, "input"),
        (" m", {"input": 1}, "model"),
        ("m" * 129, {"input": 1}, "model"),
    ],
)
async def test_sd1_a_bad_price_is_refused_with_its_field(
    priced_gateway: Gateway, model: str, body: dict[str, Any], field: str
) -> None:
    response = await priced_gateway.client.put(f"/v1/prices/{model}", json=body)
    assert response.status_code in (413, 422), response.text
    assert field in [error["field"] for error in response.json()["errors"]]
