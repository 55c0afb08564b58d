"""SD2, SD3: workers' calls are charged to the agent and user that caused them, and not made over budget."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from shared.foundation import config
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, make_due
from tests.integration.dreams.conftest import merge_reply, run_dream, save_memories
from tests.integration.spend.conftest import SCOPE, json_of, metric, money, report, save, set_budget
from tests.standins.behaviours import (
    Drop,
    EmptyChoices,
    Garbage,
    Hang,
    Reply,
    Status,
    usage,
)
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour
from workers.sweep.sweep import sweep_once

USED = usage(prompt=1200, completion=80, cached=1024)
COST = Decimal("0.000848")
ITEMS = json.dumps([{"content": "Ada lives in Lyon."}])


async def _memory(gateway: Gateway, memory_id: str) -> dict[str, Any]:
    return await json_of(gateway.client.get(f"/v1/memories/{memory_id}"))


async def _balance(gateway: Gateway) -> dict[str, Any]:
    return await json_of(gateway.client.get("/v1/budgets/tenant"))


async def test_sd2_an_enrichment_is_charged_to_its_scope_and_purpose(
    gateway_with_model: Gateway, models: ModelServer
) -> None:
    models.chat_default = Reply(ITEMS, usage=USED)
    cost_before = await metric(
        gateway_with_model, "loci_spend_cost_usd_total", 'purpose="enrichment"', 'model="m"'
    )
    await save(gateway_with_model)
    await drain(gateway_with_model.resources)

    [row] = await report(gateway_with_model, "agent", "user", "session", "purpose", "model")
    assert row == {
        "agent_id": "support",
        "user_id": "ada",
        "session_id": None,
        "purpose": "enrichment",
        "model": "m",
        "charges": 1,
        "input_tokens": 176,
        "output_tokens": 80,
        "cached_tokens": 1024,
        "cost_usd": float(COST),
        "unpriced": 0,
        "estimated": 0,
    }
    now = await metric(gateway_with_model, "loci_spend_cost_usd_total", 'purpose="enrichment"', 'model="m"')
    assert now - cost_before == pytest.approx(float(COST))


async def test_sd3_over_budget_a_memory_is_kept_raw_with_the_reason(
    gateway_with_model: Gateway, models: ModelServer
) -> None:
    await set_budget(gateway_with_model, limit_usd="0.000001")
    raw = await save(gateway_with_model)
    await drain(gateway_with_model.resources)

    memory = await _memory(gateway_with_model, raw["id"])
    assert memory["state"] == "kept-raw"
    assert memory["failure_reason"].startswith("over budget 'tenant' per day")
    assert models.chat_calls == []
    assert await report(gateway_with_model) == []
    page = await json_of(
        gateway_with_model.client.post("/v1/memories/search", json={"query": "Lyon", **SCOPE})
    )
    assert [result["id"] for result in page["results"]] == [raw["id"]]


async def test_sd3_an_agents_budget_stops_that_agent_alone(
    gateway_with_model: Gateway, models: ModelServer
) -> None:
    models.chat_default = Reply(ITEMS, usage=USED)
    await set_budget(gateway_with_model, "agent/support", limit_tokens=0)
    stopped = await save(gateway_with_model)
    free = await save(gateway_with_model, agent_id="another")
    await drain(gateway_with_model.resources)
    assert (await _memory(gateway_with_model, stopped["id"]))["state"] == "kept-raw"
    assert "budget" in (await _memory(gateway_with_model, stopped["id"]))["failure_reason"]
    free_reason = (await _memory(gateway_with_model, free["id"]))["failure_reason"]
    assert "wait for a decision" in free_reason, "the model was asked"


@pytest.mark.parametrize(("allowed", "calls"), [(False, 0), (True, 1)])
async def test_sd3_a_model_without_a_price_is_called_under_a_budget_in_money_only_if_allowed(
    make_settings: Callable[..., config.Settings],
    database: dict[str, str],
    models: ModelServer,
    tenant: str,
    allowed: bool,  # noqa: FBT001
    calls: int,
) -> None:
    models.chat_default = Reply(ITEMS, usage=USED)
    settings = make_settings(
        **database, llm_base_url=models.url, llm_model="nobody-knows", llm_max_tokens=100
    )
    async with running_gateway(settings, tenant, has_trusted_judge=False) as gateway:
        await set_budget(gateway, limit_usd=100, allow_unpriced=allowed)
        await save(gateway)
        await drain(gateway.resources)
        assert len(models.chat_calls) == calls
        rows = await report(gateway)
    assert [(row["cost_usd"], row["unpriced"]) for row in rows] == [(None, 1)] * calls


@pytest.mark.parametrize("refusal", [Status(429), Status(500), Status(400), Garbage()])
async def test_sd3_a_call_that_was_refused_costs_nothing(
    gateway_with_model: Gateway, models: ModelServer, refusal: Behaviour
) -> None:
    await set_budget(gateway_with_model, limit_usd=1)
    models.chat_default = refusal
    await save(gateway_with_model)
    await drain(gateway_with_model.resources)
    assert len(models.chat_calls) >= 1
    assert await report(gateway_with_model) == []
    assert (await _balance(gateway_with_model))["reserved_tokens"] == 0


async def test_sd3_a_call_to_an_unreachable_endpoint_costs_nothing(
    gateway_with_model: Gateway, models: ModelServer
) -> None:
    await set_budget(gateway_with_model, limit_usd=1)
    models.stop()
    await save(gateway_with_model)
    await drain(gateway_with_model.resources)
    assert await report(gateway_with_model) == []
    assert (await _balance(gateway_with_model))["reserved_tokens"] == 0


@pytest.mark.parametrize(
    "behaviour",
    [Drop(), Garbage(""), Garbage('{"choices": ['), Reply(ITEMS, usage=None), Reply(ITEMS, usage={})],
)
async def test_sd3_a_call_without_reported_usage_is_charged_at_its_upper_bound(
    gateway_with_model: Gateway, models: ModelServer, behaviour: Behaviour
) -> None:
    await set_budget(gateway_with_model, limit_usd=1)
    models.chat_replies.append(behaviour)
    models.chat_default = Status(400)
    await save(gateway_with_model)
    await drain(gateway_with_model.resources)

    [row] = await report(gateway_with_model)
    assert (row["charges"], row["estimated"], row["output_tokens"]) == (1, 1, 100)
    prompt = models.chat_calls[0].prompt
    assert row["input_tokens"] >= len(prompt.encode())
    balance = await _balance(gateway_with_model)
    assert balance["used_tokens"] == row["input_tokens"] + row["output_tokens"]
    assert balance["reserved_tokens"] == 0


async def test_sd3_a_call_that_times_out_is_charged_at_its_upper_bound(
    make_settings: Callable[..., config.Settings],
    database: dict[str, str],
    prices: Path,
    models: ModelServer,
    tenant: str,
) -> None:
    settings = make_settings(
        **database,
        prices_file=prices,
        llm_base_url=models.url,
        llm_model="m",
        llm_timeout=0.2,
        job_max_attempts=1,
    )
    models.chat_default = Hang()
    async with running_gateway(settings, tenant, has_trusted_judge=False) as gateway:
        await save(gateway)
        await drain(gateway.resources)
        [row] = await report(gateway)
        models.stop()
    assert (row["charges"], row["estimated"]) == (1, 1)


async def test_sd2_an_invalid_reply_costs_what_it_reports(
    gateway_with_model: Gateway, models: ModelServer
) -> None:
    models.chat_default = Reply("", usage=USED)
    raw = await save(gateway_with_model)
    for _ in range(3):
        await drain(gateway_with_model.resources)
        await make_due(gateway_with_model.resources)
    assert (await _memory(gateway_with_model, raw["id"]))["state"] == "failed"
    [row] = await report(gateway_with_model)
    assert (row["charges"], row["estimated"]) == (len(models.chat_calls), 0)
    assert row["input_tokens"] == 176 * len(models.chat_calls)


async def test_sd2_a_reply_without_a_choice_costs_what_it_reports(
    gateway_with_model: Gateway, models: ModelServer
) -> None:
    models.chat_default = EmptyChoices()
    await save(gateway_with_model)
    await drain(gateway_with_model.resources)
    [row] = await report(gateway_with_model)
    assert row["estimated"] == 0
    assert row["input_tokens"] == row["charges"] * len(models.chat_calls[0].prompt.split())


async def test_dr7_a_dream_pass_reports_its_model_its_tokens_and_its_cost(
    gateway_with_model: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(gateway_with_model)
    models.chat_default = Reply(merge_reply(ids).text, usage=USED)
    run = await run_dream(gateway_with_model, passes=["consolidate"])

    response = await gateway_with_model.client.get(f"/v1/dreams/{run['id']}")
    [dream_pass] = response.json()["passes"]
    assert dream_pass["state"] == "done", dream_pass
    assert (dream_pass["model"], dream_pass["input_tokens"], dream_pass["output_tokens"]) == ("m", 1200, 80)
    assert money(response, "cost_usd") == COST
    [row] = await report(gateway_with_model, "purpose")
    assert (row["purpose"], row["cost_usd"]) == ("consolidate", float(COST))
    assert await metric(gateway_with_model, "loci_dream_cost_usd_total", "consolidate") > 0


async def test_sd3_over_budget_a_dream_pass_is_skipped_and_the_next_one_begins(
    gateway_with_model: Gateway, models: ModelServer
) -> None:
    await save_memories(gateway_with_model)
    await json_of(
        gateway_with_model.client.post(
            "/v1/memories", json={"content": "Ship it: on Monday!", "enrich": False}
        ),
        201,
    )
    await json_of(
        gateway_with_model.client.post(
            "/v1/memories", json={"content": "Ship it on Monday.", "enrich": False}
        ),
        201,
    )
    await set_budget(gateway_with_model, "purpose/consolidate", limit_usd=0)

    run = await run_dream(gateway_with_model, passes=["deduplicate", "consolidate"])

    passes = {dream_pass["name"]: dream_pass for dream_pass in run["passes"]}
    assert passes["deduplicate"]["state"] == "done"
    assert passes["consolidate"]["state"] == "skipped"
    assert passes["consolidate"]["reason"].startswith("over budget 'purpose/consolidate' per day")
    assert passes["consolidate"]["cost_usd"] is None
    assert models.chat_calls == []


async def test_sd3_many_enrichments_at_once_stay_within_the_budget(
    gateway_with_model: Gateway, models: ModelServer
) -> None:
    models.chat_default = Reply("[]", usage=usage(prompt=1000, completion=100))
    await set_budget(gateway_with_model, limit_tokens=20_000)
    body = {"memories": [{"content": f"Fact {n} of many", **SCOPE} for n in range(30)]}
    await json_of(gateway_with_model.client.post("/v1/memories/batch", json=body), 201)
    await drain(gateway_with_model.resources)
    await sweep_once(gateway_with_model.resources)

    balance = await _balance(gateway_with_model)
    assert balance["used_tokens"] == 1100 * len(models.chat_calls) <= 20_000
    assert 0 < len(models.chat_calls) < 30
    assert balance["reserved_tokens"] == 0
