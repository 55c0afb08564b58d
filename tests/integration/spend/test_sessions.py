"""SD1: usage that agents report is summed exactly, counted once, and shown in the list of sessions."""

import asyncio
from decimal import Decimal
from typing import Any

import httpx
import orjson
import pytest

from tests.conftest import Gateway
from tests.integration.spend.conftest import M, json_of, money, report

SESSION = "talk/1"
SPEND = f"/v1/sessions/{SESSION}/spend"


@pytest.fixture(autouse=True)
async def session(priced_gateway: Gateway) -> None:
    body = {"id": SESSION, "agent_id": "support", "user_id": "ada"}
    await json_of(priced_gateway.client.post("/v1/sessions", json=body), 201)


def _body(usage_id: str, prompt: int = 1000, output: int = 10, cached: int = 0, model: str = "m") -> Any:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {"usage_id": usage_id, "model": model, "usage": usage}


def _cost(prompt: int, output: int, cached: int) -> Decimal:
    parts = (prompt - cached) * M["input"] + output * M["output"] + cached * M["cached"]
    return parts / 1_000_000


async def test_sd1_cached_tokens_are_billed_once_and_at_their_own_price(
    priced_gateway: Gateway,
) -> None:
    response = await priced_gateway.client.post(SPEND, json=_body("u1", 1200, 80, 1024))

    assert response.status_code == 201, response.text
    totals = response.json()
    assert totals["total_input_tokens"] == 176
    assert totals["total_output_tokens"] == 80
    assert totals["total_cached_tokens"] == 1024
    assert money(response, "total_cost_usd") == _cost(1200, 80, 1024) == Decimal("0.000848")
    assert money(response, "cost_usd") == Decimal("0.000848")
    assert totals["charge"]["usage_id"] == "u1"


async def test_sd1_a_hundred_reports_at_once_add_up_to_the_last_digit(
    priced_gateway: Gateway,
) -> None:
    calls = [(100 + n, n, n // 3) for n in range(100)]
    posts = [
        priced_gateway.client.post(SPEND, json=_body(f"u{n}", *call), timeout=60)
        for n, call in enumerate(calls)
    ]
    responses = await asyncio.gather(*posts)

    assert {response.status_code for response in responses} == {201}
    response = await priced_gateway.client.get(SPEND)
    totals = response.json()
    assert totals["total_input_tokens"] == sum(prompt - cached for prompt, _, cached in calls)
    assert totals["total_output_tokens"] == sum(output for _, output, _ in calls)
    assert totals["total_cached_tokens"] == sum(cached for _, _, cached in calls)
    assert money(response, "total_cost_usd") == sum((_cost(*call) for call in calls), Decimal(0))
    assert (await report(priced_gateway))[0]["charges"] == 100


async def test_sd1_the_same_usage_reported_again_adds_nothing_even_concurrently(
    priced_gateway: Gateway,
) -> None:
    posts = [priced_gateway.client.post(SPEND, json=_body("twice")) for _ in range(10)]
    responses = [orjson.loads(response.content) for response in await asyncio.gather(*posts)]

    assert all(response == responses[0] for response in responses)
    assert (await json_of(priced_gateway.client.get(SPEND)))["total_input_tokens"] == 1000


async def test_sd1_the_same_usage_id_with_other_numbers_is_a_conflict(
    priced_gateway: Gateway,
) -> None:
    await json_of(priced_gateway.client.post(SPEND, json=_body("u")), 201)
    before = await json_of(priced_gateway.client.get(SPEND))
    for other in (_body("u", 1001), _body("u", cached=1), _body("u", model="e")):
        assert (await priced_gateway.client.post(SPEND, json=other)).status_code == 409
    assert await json_of(priced_gateway.client.get(SPEND)) == before


async def test_sd1_an_idempotency_key_names_one_request(priced_gateway: Gateway) -> None:
    headers = {"idempotency-key": "once"}
    first = await priced_gateway.client.post(SPEND, json=_body("u"), headers=headers)
    repeated = await priced_gateway.client.post(SPEND, json=_body("u"), headers=headers)
    other = await priced_gateway.client.post(SPEND, json=_body("v"), headers=headers)
    assert (first.status_code, repeated.status_code, other.status_code) == (201, 201, 409)
    assert first.content == repeated.content


async def test_sd1_a_model_without_a_price_has_an_unknown_cost_and_not_zero(
    priced_gateway: Gateway,
) -> None:
    response = await json_of(priced_gateway.client.post(SPEND, json=_body("u", model="nobody-knows")), 201)
    assert response["charge"]["cost_usd"] is None
    assert response["total_cost_usd"] is None
    assert response["unpriced"] == 1
    await json_of(priced_gateway.client.post(SPEND, json=_body("v", 1000, 0)), 201)
    both = await priced_gateway.client.get(SPEND)
    assert money(both, "total_cost_usd") == Decimal("0.001")
    assert both.json()["unpriced"] == 1


async def test_sd1_the_listing_mirrors_the_totals_and_is_null_before_the_first(
    priced_gateway: Gateway,
) -> None:
    url = f"/v1/sessions/{SESSION}"
    assert (await json_of(priced_gateway.client.get(url)))["spend"] is None
    assert (await json_of(priced_gateway.client.get(SPEND)))["last_updated"] is None

    await json_of(priced_gateway.client.post(SPEND, json=_body("u", 1200, 80, 1024)), 201)

    totals = await json_of(priced_gateway.client.get(SPEND))
    listed = await priced_gateway.client.get("/v1/sessions")
    assert listed.json()["results"][0]["spend"] == totals
    assert (await json_of(priced_gateway.client.get(url)))["spend"] == totals
    assert money(listed, "total_cost_usd") == Decimal("0.000848")


async def test_sd1_spend_json_is_in_the_source_systems_shape(priced_gateway: Gateway) -> None:
    url = f"/v1/sessions/{SESSION}/files/spend.json"
    empty = await json_of(priced_gateway.client.get(url))
    assert empty["total_cost_usd"] == 0
    await json_of(priced_gateway.client.post(SPEND, json=_body("u")), 201)
    file = await json_of(priced_gateway.client.get(url))
    assert {
        "total_input_tokens",
        "total_output_tokens",
        "total_cached_tokens",
        "total_cost_usd",
        "last_updated",
    } == set(file)
    assert file | {"unpriced": 0} == await json_of(priced_gateway.client.get(SPEND))


async def test_sd1_the_usage_of_a_turn_is_booked_with_it(priced_gateway: Gateway) -> None:
    usage = _body("", 500, 20)["usage"] | {"model": "m"}
    turn = {"role": "assistant", "content": "Done.", "usage": usage}
    turns = f"/v1/sessions/{SESSION}/turns"
    for _ in range(2):  # two turns that used the same are two calls
        await json_of(priced_gateway.client.post(turns, json=turn), 201)
    named = turn | {"usage": usage | {"id": "chatcmpl-7"}}
    batch = {"turns": [named, {"role": "user", "content": "Thanks."}, named, turn]}
    await json_of(priced_gateway.client.post(f"{turns}/batch", json=batch), 201)

    assert (await json_of(priced_gateway.client.get(SPEND)))["total_output_tokens"] == 80
    rows = await report(priced_gateway, "purpose", "model")
    assert [(row["purpose"], row["model"], row["charges"]) for row in rows] == [("session", "m", 4)]


async def test_sd1_a_turn_whose_usage_cannot_be_read_is_refused_and_not_stored(
    priced_gateway: Gateway,
) -> None:
    turn = {"role": "assistant", "content": "Done.", "usage": {"prompt_tokens": -1}}
    response = await priced_gateway.client.post(f"/v1/sessions/{SESSION}/turns", json=turn)
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "usage.prompt_tokens"
    assert (await json_of(priced_gateway.client.get(f"/v1/sessions/{SESSION}/turns")))["results"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (_body(""), "usage_id"),
        (_body("x" * 129), "usage_id"),
        (_body("a\tb"), "usage_id"),
        (_body("turn#1"), "usage_id"),
        (_body("u", model=" "), "model"),
        (_body("u", model="m\u2028"), "model"),
        (_body("u", model="m" * 129), "model"),
        ({"usage_id": "u", "model": "m", "usage": {}}, "usage"),
        ({"usage_id": "u", "model": "m", "usage": {"prompt_tokens": 1.5}}, "usage.prompt_tokens"),
        ({"usage_id": "u", "model": "m", "usage": []}, "usage"),
        ({"usage_id": "u", "model": "m"}, "usage"),
        ({"usage_id": 4, "model": "m", "usage": {"total_tokens": 1}}, "usage_id"),
        (_body("u") | {"cost_usd": 0}, "cost_usd"),
        (_body("u", prompt=1, cached=2), "usage"),
    ],
)
async def test_sd1_bad_input_is_refused_with_its_field_and_books_nothing(
    priced_gateway: Gateway, body: Any, field: str
) -> None:
    response = await priced_gateway.client.post(SPEND, json=body)
    assert response.status_code in (413, 422), response.text
    assert field in [error["field"] for error in response.json()["errors"]]
    assert (await json_of(priced_gateway.client.get(SPEND)))["last_updated"] is None


@pytest.mark.parametrize("usage_id", ["a\u0000b", "\ud800"])
async def test_sd1_a_usage_id_that_cannot_be_stored_is_refused(
    priced_gateway: Gateway, usage_id: str
) -> None:
    raw = orjson.dumps(_body("MARK")).replace(b"MARK", usage_id.encode("unicode_escape"))
    raw = raw.replace(b"\\x00", b"\\u0000")
    response = await priced_gateway.client.post(
        SPEND, content=raw, headers={"content-type": "application/json"}
    )
    assert response.status_code == 422, response.text


async def test_sd1_an_unknown_session_is_not_found(priced_gateway: Gateway) -> None:
    calls: list[httpx.Response] = [
        await priced_gateway.client.get("/v1/sessions/nobody/spend"),
        await priced_gateway.client.post("/v1/sessions/nobody/spend", json=_body("u")),
    ]
    assert [response.status_code for response in calls] == [404, 404]


async def test_sd1_a_deleted_sessions_charges_stay_and_a_new_session_begins_at_zero(
    priced_gateway: Gateway,
) -> None:
    await json_of(priced_gateway.client.post(SPEND, json=_body("u")), 201)
    await json_of(priced_gateway.client.delete(f"/v1/sessions/{SESSION}"))
    assert (await report(priced_gateway, "session"))[0]["session_id"] == SESSION

    body = {"id": SESSION, "agent_id": "support", "user_id": "ada"}
    assert (await json_of(priced_gateway.client.post("/v1/sessions", json=body), 201))["spend"] is None
    repeated = await json_of(priced_gateway.client.post(SPEND, json=_body("u", 2000)), 201)
    assert repeated["total_input_tokens"] == 2000
    assert (await report(priced_gateway, "session"))[0]["input_tokens"] == 3000


async def test_lt13_erasing_a_user_keeps_the_charges_without_the_user(
    priced_gateway: Gateway,
) -> None:
    await json_of(priced_gateway.client.post(SPEND, json=_body("mail-of-ada")), 201)
    before = (await report(priced_gateway))[0]

    receipt = await json_of(priced_gateway.client.delete("/v1/users/ada"))

    assert receipt["erased"]["anonymised_charges"] == 1
    assert (await report(priced_gateway))[0] == before
    rows = await report(priced_gateway, "user", "session", "agent")
    assert [(row["user_id"], row["session_id"], row["agent_id"]) for row in rows] == [(None, None, "support")]
