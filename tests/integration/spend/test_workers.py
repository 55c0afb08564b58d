"""SD2, SD3: what workers' own calls cost is booked to who caused them; over budget they are not made."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from shared.foundation import config
from tests.conftest import Gateway, serving
from tests.draining import drain, make_due
from tests.integration.dreams.conftest import dreamt, proposing, saved
from tests.integration.spend.conftest import metric, money, report, told
from tests.standins.behaviours import (
    Drop,
    EmptyChoices,
    Garbage,
    Hang,
    Reply,
    Status,
    Vectors,
    WrongCount,
    usage,
)
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour
from workers.sweep.sweep import sweep_once

SCOPE = {"agent_id": "support", "user_id": "ada"}
USED = usage(prompt=1200, completion=80, cached=1024)
COST = Decimal("0.000848")
ITEMS = json.dumps([{"content": "Ada lives in Lyon."}])


async def _save(house: Gateway, content: str = "Ada said she lives in Lyon", **more: Any) -> dict[str, Any]:
    return await told(house.client.post("/v1/memories", json={"content": content, **SCOPE, **more}), 201)


async def _entry(house: Gateway, entry_id: str) -> dict[str, Any]:
    return await told(house.client.get(f"/v1/memories/{entry_id}"))


async def _budget(house: Gateway, scope: str = "tenant", **limits: Any) -> None:
    await told(house.client.put(f"/v1/budgets/{scope}", json={"period": "day", **limits}))


async def _standing(house: Gateway) -> dict[str, Any]:
    return await told(house.client.get("/v1/budgets/tenant"))


async def test_sd2_an_enrichment_is_booked_to_its_scope_and_purpose(
    thinker: Gateway, models: ModelServer
) -> None:
    models.chat_default = Reply(ITEMS, usage=USED)
    spent = await metric(thinker, "loci_spend_cost_usd_total", 'purpose="enrichment"', 'model="m"')
    await _save(thinker)
    await drain(thinker.resources)

    [row] = await report(thinker, "agent", "user", "session", "purpose", "model")
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
    now = await metric(thinker, "loci_spend_cost_usd_total", 'purpose="enrichment"', 'model="m"')
    assert now - spent == pytest.approx(float(COST))


async def test_sd3_over_budget_an_entry_is_kept_raw_and_says_why(
    thinker: Gateway, models: ModelServer
) -> None:
    await _budget(thinker, limit_usd="0.000001")
    raw = await _save(thinker)
    await drain(thinker.resources)

    kept = await _entry(thinker, raw["id"])
    assert kept["state"] == "kept-raw"
    assert kept["failure_reason"].startswith("over budget 'tenant' per day")
    assert models.chat_calls == []
    assert await report(thinker) == []
    found = await told(thinker.client.post("/v1/memories/search", json={"query": "Lyon", **SCOPE}))
    assert [one["id"] for one in found["results"]] == [raw["id"]]


async def test_sd3_an_agents_budget_stops_that_agent_alone(thinker: Gateway, models: ModelServer) -> None:
    models.chat_default = Reply(ITEMS, usage=USED)
    await _budget(thinker, "agent/support", limit_tokens=0)
    stopped = await _save(thinker)
    free = await _save(thinker, agent_id="another")
    await drain(thinker.resources)
    assert (await _entry(thinker, stopped["id"]))["state"] == "kept-raw"
    assert (await _entry(thinker, free["id"]))["state"] == "archived"


@pytest.mark.parametrize(("allowed", "calls"), [(False, 0), (True, 1)])
async def test_sd3_a_model_without_a_price_is_asked_under_a_budget_in_money_only_if_allowed(
    make_settings: Callable[..., config.Settings],
    models: ModelServer,
    tenant: str,
    allowed: bool,  # noqa: FBT001
    calls: int,
) -> None:
    models.chat_default = Reply(ITEMS, usage=USED)
    settings = make_settings(
        apart=True, llm_base_url=models.url, llm_model="nobody-knows", llm_max_tokens=100
    )
    async with serving(settings, tenant) as house:
        await _budget(house, limit_usd=100, allow_unpriced=allowed)
        await _save(house)
        await drain(house.resources)
        assert len(models.chat_calls) == calls
        rows = await report(house)
    assert [(row["cost_usd"], row["unpriced"]) for row in rows] == [(None, 1)] * calls


@pytest.mark.parametrize("refusal", [Status(429), Status(500), Status(400)])
async def test_sd3_a_call_that_was_refused_costs_nothing(
    thinker: Gateway, models: ModelServer, refusal: Behaviour
) -> None:
    await _budget(thinker, limit_usd=1)
    models.chat_default = refusal
    await _save(thinker)
    await drain(thinker.resources)
    assert len(models.chat_calls) >= 1
    assert await report(thinker) == []
    assert (await _standing(thinker))["reserved_tokens"] == 0


async def test_sd3_a_call_that_found_nobody_costs_nothing(thinker: Gateway, models: ModelServer) -> None:
    await _budget(thinker, limit_usd=1)
    models.stop()
    await _save(thinker)
    await drain(thinker.resources)
    assert await report(thinker) == []
    assert (await _standing(thinker))["reserved_tokens"] == 0


@pytest.mark.parametrize("loss", [Drop(), Garbage(), Reply(ITEMS, usage=None), Reply(ITEMS, usage={})])
async def test_sd3_a_call_of_which_nobody_tells_what_it_used_is_booked_at_its_bound(
    thinker: Gateway, models: ModelServer, loss: Behaviour
) -> None:
    await _budget(thinker, limit_usd=1)
    models.chat_replies.append(loss)
    models.chat_default = Status(400)
    await _save(thinker)
    await drain(thinker.resources)

    [row] = await report(thinker)
    assert (row["charges"], row["estimated"], row["output_tokens"]) == (1, 1, 100)
    prompt = models.chat_calls[0].prompt
    assert row["input_tokens"] >= len(prompt.encode())
    standing = await _standing(thinker)
    assert standing["used_tokens"] == row["input_tokens"] + row["output_tokens"]
    assert standing["reserved_tokens"] == 0


async def test_sd3_an_answer_that_comes_too_late_is_booked_at_its_bound(
    make_settings: Callable[..., config.Settings], prices: Path, models: ModelServer, tenant: str
) -> None:
    settings = make_settings(
        apart=True,
        prices_file=prices,
        llm_base_url=models.url,
        llm_model="m",
        llm_timeout=0.2,
        job_max_attempts=1,
    )
    models.chat_default = Hang()
    async with serving(settings, tenant) as house:
        await _save(house)
        await drain(house.resources)
        [row] = await report(house)
        models.stop()
    assert (row["charges"], row["estimated"]) == (1, 1)


async def test_sd2_an_answer_that_cannot_be_used_costs_what_it_says(
    thinker: Gateway, models: ModelServer
) -> None:
    models.chat_default = Reply("", usage=USED)
    raw = await _save(thinker)
    for _ in range(3):
        await drain(thinker.resources)
        await make_due(thinker.resources)
    assert (await _entry(thinker, raw["id"]))["state"] == "failed"
    [row] = await report(thinker)
    assert (row["charges"], row["estimated"]) == (len(models.chat_calls), 0)
    assert row["input_tokens"] == 176 * len(models.chat_calls)


async def test_sd2_an_answer_without_a_choice_still_tells_what_it_used(
    thinker: Gateway, models: ModelServer
) -> None:
    models.chat_default = EmptyChoices()
    await _save(thinker)
    await drain(thinker.resources)
    [row] = await report(thinker)
    assert row["estimated"] == 0
    assert row["input_tokens"] == row["charges"] * len(models.chat_calls[0].prompt.split())


async def test_sd2_one_embedding_call_for_many_is_shared_out_between_them(
    embedding: Gateway, models: ModelServer
) -> None:
    """Of two tenants and two users, in proportion to their texts, and no token more or less."""
    texts = {"ada": "lorem " * 100, "bob": "ipsum " * 300}
    for user, text in texts.items():
        await _save(embedding, text, user_id=user)
    async with await embedding.another(f"{embedding.tenant}-2") as other:
        body = {"content": "dolor " * 200, **SCOPE}
        await told(other.post("/v1/memories", json=body), 201)
        await drain(embedding.resources)
        mine = {row["user_id"]: row["input_tokens"] for row in await report(embedding, "user", "purpose")}
        theirs = (await told(other.get("/v1/spend")))["results"][0]["input_tokens"]

    sent = [text for call in models.embedding_calls for text in call.texts]
    assert mine["ada"] + mine["bob"] + theirs == sum(len(text.split()) for text in sent)
    assert len(models.embedding_calls) == 1
    assert mine["bob"] / mine["ada"] == pytest.approx(3, rel=0.1)
    assert theirs / mine["ada"] == pytest.approx(2, rel=0.1)


async def test_sd3_over_budget_a_vector_waits_for_the_next_window_and_says_so(
    embedding: Gateway, models: ModelServer
) -> None:
    await _budget(embedding, limit_tokens=3)
    entry = await _save(embedding)
    async with await embedding.another(f"{embedding.tenant}-2") as other:
        await told(other.post("/v1/memories", json={"content": "none of my business"}), 201)
        await drain(embedding.resources)
        assert (await told(other.get("/v1/status")))["pending"]["embedding"] == 0

    status = await told(embedding.client.get("/v1/status"))
    assert status["pending"]["embedding"] == 1
    assert status["delayed"][0]["stage"] == "embedding"
    assert status["delayed"][0]["reason"].startswith("over budget 'tenant' per day")
    assert [text for call in models.embedding_calls for text in call.texts] == ["none of my business"]
    found = await told(embedding.client.post("/v1/memories/search", json={"query": "Lyon", **SCOPE}))
    assert [one["id"] for one in found["results"]] == [entry["id"]]

    # A budget that is raised is not waited for until the window turns.
    await _budget(embedding, limit_tokens=10_000)
    await drain(embedding.resources)
    status = await told(embedding.client.get("/v1/status"))
    assert (status["pending"]["embedding"], status["delayed"]) == (0, [])


async def test_sd3_of_a_batch_the_records_of_who_may_spend_get_their_vectors(embedding: Gateway) -> None:
    await _budget(embedding, "agent/support", limit_tokens=3)
    await _save(embedding, "waits for its vector")
    await _save(embedding, "has its vector", agent_id="another")
    await drain(embedding.resources)
    assert (await told(embedding.client.get("/v1/status")))["pending"]["embedding"] == 1
    assert [row["agent_id"] for row in await report(embedding, "agent")] == ["another"]


@pytest.mark.parametrize(("fault", "lost"), [(Status(503), 0), (WrongCount(), 0), (Drop(), 1)])
async def test_sd3_a_failed_embedding_call_is_booked_as_far_as_it_is_known(
    embedding: Gateway, models: ModelServer, fault: Behaviour, lost: int
) -> None:
    models.embedding_replies.append(fault)
    await _save(embedding)
    await drain(embedding.resources)
    models.embedding_default = Vectors()
    await make_due(embedding.resources)
    await drain(embedding.resources)
    assert (await told(embedding.client.get("/v1/status")))["pending"]["embedding"] == 0
    [row] = await report(embedding)
    told_usage = isinstance(fault, WrongCount)  # it answered, and said what that used
    assert (row["charges"], row["estimated"]) == (1 + lost + told_usage, lost)


async def test_dr7_a_dream_pass_tells_its_model_its_tokens_and_its_cost(
    thinker: Gateway, models: ModelServer
) -> None:
    ids = await saved(thinker)
    models.chat_default = Reply(proposing(ids).text, usage=USED)
    run = await dreamt(thinker, passes=["consolidate"])

    answer = await thinker.client.get(f"/v1/dreams/{run['id']}")
    [one] = answer.json()["passes"]
    assert one["state"] == "done", one
    assert (one["model"], one["input_tokens"], one["output_tokens"]) == ("m", 1200, 80)
    assert money(answer, "cost_usd") == COST
    [row] = await report(thinker, "purpose")
    assert (row["purpose"], row["cost_usd"]) == ("consolidate", float(COST))
    assert await metric(thinker, "loci_dream_cost_usd_total", "consolidate") > 0


async def test_sd3_over_budget_a_dream_pass_is_skipped_and_the_next_one_begins(
    thinker: Gateway, models: ModelServer
) -> None:
    await saved(thinker)
    await told(
        thinker.client.post("/v1/memories", json={"content": "Ship it: on Monday!", "enrich": False}), 201
    )
    await told(
        thinker.client.post("/v1/memories", json={"content": "Ship it on Monday.", "enrich": False}), 201
    )
    await _budget(thinker, "purpose/consolidate", limit_usd=0)

    run = await dreamt(thinker, passes=["deduplicate", "consolidate"])

    passes = {one["name"]: one for one in run["passes"]}
    assert passes["deduplicate"]["state"] == "done"
    assert passes["consolidate"]["state"] == "skipped"
    assert passes["consolidate"]["reason"].startswith("over budget 'purpose/consolidate' per day")
    assert passes["consolidate"]["cost_usd"] is None
    assert models.chat_calls == []


async def test_sd3_many_enrichments_at_once_stay_within_the_budget(
    thinker: Gateway, models: ModelServer
) -> None:
    models.chat_default = Reply("[]", usage=usage(prompt=1000, completion=100))
    await _budget(thinker, limit_tokens=20_000)
    body = {"memories": [{"content": f"Fact {n} of many", **SCOPE} for n in range(30)]}
    await told(thinker.client.post("/v1/memories/batch", json=body), 201)
    await drain(thinker.resources)
    await sweep_once(thinker.resources)

    standing = await _standing(thinker)
    assert standing["used_tokens"] == 1100 * len(models.chat_calls) <= 20_000
    assert 0 < len(models.chat_calls) < 30
    assert standing["reserved_tokens"] == 0
