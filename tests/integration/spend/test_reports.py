"""SD4: what was spent by agent, session, user, purpose, model and day, as JSON, CSV and a table."""

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
from tests.conftest import Gateway, serving
from tests.integration.spend.conftest import money, report, told


async def _book(house: Gateway, session: str, place: int, **more: Any) -> None:
    usage = {"prompt_tokens": 100 * place, "completion_tokens": place}
    body = {"usage_id": f"u{place}", "model": "m", "usage": usage} | more
    await told(house.client.post(f"/v1/sessions/{session}/spend", json=body), 201)


async def _open(house: Gateway, session: str, agent: str, user: str | None = None) -> None:
    body = {"id": session, "agent_id": agent, "user_id": user}
    await told(house.client.post("/v1/sessions", json=body), 201)


@pytest.mark.parametrize("seed", range(3))
async def test_sd4_every_reports_sums_are_those_of_the_sessions(bookkeeper: Gateway, seed: int) -> None:
    """Whatever is booked where: by session the sums are the sessions', and by anything they add up alike."""
    chance = random.Random(seed)
    sessions = [f"s{n}" for n in range(4)]
    for name in sessions:
        await _open(bookkeeper, name, f"a{chance.randrange(2)}", chance.choice([None, "ada"]))
    for place in range(40):
        await _book(bookkeeper, chance.choice(sessions), place, model=chance.choice(["m", "e", "unknown"]))

    by_session = {row["session_id"]: row for row in await report(bookkeeper, "session")}
    for name in sessions:
        answer = await bookkeeper.client.get(f"/v1/sessions/{name}/spend")
        totals, row = answer.json(), by_session[name]
        kinds = ("input_tokens", "output_tokens", "cached_tokens", "cost_usd")
        assert [totals[f"total_{kind}"] for kind in kinds] == [row[kind] for kind in kinds]
        assert totals["unpriced"] == row["unpriced"]
    whole = await _summed(bookkeeper)
    for groups in ("agent", "session", "user", "purpose", "model", "day", "agent,model,day"):
        assert await _summed(bookkeeper, groups) == whole


async def _summed(house: Gateway, groups: str = "") -> tuple[Any, ...]:
    params = {"group_by": groups, "format": "csv"}
    answer = await house.client.get("/v1/spend", params=params)
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    counts = [sum(int(row[name]) for row in rows) for name in ("charges", "input_tokens", "unpriced")]
    return (*counts, sum(Decimal(row["cost_usd"] or 0) for row in rows))


async def test_sd4_json_and_csv_tell_the_same_with_every_digit(bookkeeper: Gateway) -> None:
    await _open(bookkeeper, "s", "=cmd")
    await _book(bookkeeper, "s", 7)
    params = {"group_by": "agent,model"}
    as_json = await bookkeeper.client.get("/v1/spend", params=params)
    as_csv = await bookkeeper.client.get("/v1/spend", params=params | {"format": "csv"})
    assert money(as_json, "cost_usd") == Decimal("0.000714")
    assert as_csv.headers["content-type"].startswith("text/csv")
    # A name that a spreadsheet would run as a formula is made a text.
    assert as_csv.text.splitlines() == [
        "agent_id,model,charges,input_tokens,output_tokens,cached_tokens,cost_usd,unpriced,estimated",
        "'=cmd,m,1,700,7,0,0.000714,0,0",
    ]


async def test_sd4_reports_go_by_days_of_utc_and_from_one_moment_to_another(bookkeeper: Gateway) -> None:
    await _open(bookkeeper, "s", "support")
    await _book(bookkeeper, "s", 1)
    async with bookkeeper.resources.postgres.for_tenant(bookkeeper.tenant) as connection:
        mine = charge.c.tenant == bookkeeper.tenant
        before = func.now() - timedelta(days=2)
        await connection.execute(update(charge).where(mine).values(created_at=before))
    await _book(bookkeeper, "s", 2)

    today = datetime.now(UTC).date()
    days = {row["day"]: row["input_tokens"] for row in await report(bookkeeper, "day")}
    assert days == {str(today): 200, str(today - timedelta(days=2)): 100}
    since = str(today - timedelta(days=1))
    assert [row["input_tokens"] for row in await report(bookkeeper, since=since)] == [200]
    assert [row["input_tokens"] for row in await report(bookkeeper, until=since)] == [100]
    assert await report(bookkeeper, agent_id="nobody") == []


async def test_sd4_a_bound_key_sees_its_own_spend_only(bookkeeper: Gateway) -> None:
    for session, agent, user in (("s1", "a1", "ada"), ("s2", "a1", "bob"), ("s3", "a2", "ada")):
        await _open(bookkeeper, session, agent, user)
        await _book(bookkeeper, session, 1)
    for bound, seen in (
        ({"agent_id": "a1"}, ["s1", "s2"]),
        ({"user_id": "ada"}, ["s1", "s3"]),
        ({"agent_id": "a2", "user_id": "bob"}, []),
    ):
        async with await bookkeeper.another(**bound) as client:
            answer = await told(client.get("/v1/spend", params={"group_by": "session"}))
            assert sorted(row["session_id"] for row in answer["results"]) == seen
            other = dict.fromkeys(bound, "another")
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
async def test_sd4_a_bad_question_is_refused_with_its_field(
    bookkeeper: Gateway, params: dict[str, str], field: str
) -> None:
    answer = await bookkeeper.client.get("/v1/spend", params=params)
    assert answer.status_code == 422, answer.text
    assert field in [one["field"] for one in answer.json()["errors"]]


async def test_sd4_the_command_prints_a_table_of_spend_and_budgets(
    make_settings: Callable[..., config.Settings],
    prices: Path,
    tenant: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = make_settings(prices_file=prices)
    async with serving(settings, tenant) as house:
        await _open(house, "s", "support")
        await _book(house, "s", 7)
        await told(house.client.put("/v1/budgets/tenant", json={"period": "day", "limit_usd": 1}))
        groups = check_groups("agent,model")
        rows, budgets = await spend._read(house.resources, tenant, groups, Criteria({}))
    monkeypatch.setenv("COLUMNS", "200")
    spend.print_report(groups, rows, budgets)
    out = capsys.readouterr().out
    for word in ("support", "0.000714", "cost usd", "tenant", "day"):
        assert word in out


async def test_sd1_a_tenants_own_price_counts_from_then_on_for_itself_alone(bookkeeper: Gateway) -> None:
    await _open(bookkeeper, "s", "support")
    await _book(bookkeeper, "s", 1)
    price = {"input": "0.000000000001", "output": 3}
    put = await bookkeeper.client.put("/v1/prices/m", json=price)
    assert money(put, "input") == money(put, "cached") == Decimal("0.000000000001")
    await _book(bookkeeper, "s", 2)

    answer = await bookkeeper.client.get("/v1/sessions/s/spend")
    exact = Decimal("0.000102") + (200 * Decimal("0.000000000001") + 2 * 3) / 1_000_000
    assert money(answer, "total_cost_usd") == exact
    async with await bookkeeper.another(f"{bookkeeper.tenant}-2") as other:
        assert await _source(other) == "file"
    assert await _source(bookkeeper.client) == "tenant"
    assert (await told(bookkeeper.client.delete("/v1/prices/m")))["deleted"] is True
    assert (await told(bookkeeper.client.delete("/v1/prices/m")))["deleted"] is False
    assert await _source(bookkeeper.client) == "file"


async def _source(client: Any, model: str = "m") -> str:
    listed = (await told(client.get("/v1/prices")))["results"]
    return next(str(one["source"]) for one in listed if one["model"] == model)


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
    bookkeeper: Gateway, model: str, body: dict[str, Any], field: str
) -> None:
    answer = await bookkeeper.client.put(f"/v1/prices/{model}", json=body)
    assert answer.status_code in (413, 422), answer.text
    assert field in [one["field"] for one in answer.json()["errors"]]
