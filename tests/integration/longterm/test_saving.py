"""LT1, LT2, LT3, LT9: the response to a save, and the same text saved again reinforces the memory."""

import asyncio
import json
import re
import secrets
from http import HTTPStatus
from typing import Any

import pytest

from tests.agent import Agent
from tests.conftest import Gateway
from tests.sql import sql

DEFAULT_FIELDS: dict[str, Any] = {
    "category": None,
    "tags": [],
    "metadata": {},
    "importance": 0.5,
    "state": "final",
    "occurred_at": None,
    "source": None,
    "updated_at": None,
    "reinforcement_count": 1,
    "agent_id": "default",
    "user_id": None,
    "superseded_by": [],
    "derived_from": [],
    "archived_at": None,
    "archive_reason": None,
    "decided_by": "caller",
    "verdict": None,
    "judge_model": None,
    "contested_with": [],
}


async def save_batch(
    agent: Agent, *bodies: dict[str, Any], status: int = HTTPStatus.CREATED
) -> list[dict[str, Any]]:
    content = json.dumps({"memories": list(bodies)})  # ASCII: httpx refuses to write lone surrogates
    headers = {"content-type": "application/json"}
    response = await agent.request(
        "POST", "/v1/memories/batch", content=content, headers=headers, status=status
    )
    return list(response["results"])


async def test_a_new_memory_has_an_id_of_twelve_hex_digits_and_the_defaults(agent: Agent) -> None:
    memory = await agent.save("Ada likes trains.")
    assert re.fullmatch("[0-9a-f]{12}", memory["id"])
    assert memory.items() >= DEFAULT_FIELDS.items()
    assert memory["content"] == "Ada likes trains."
    assert memory["created_at"] == memory["last_seen_at"]
    assert await agent.memory(memory["id"]) == memory


async def test_every_field_of_a_save_is_stored(agent: Agent) -> None:
    fields = {
        "category": "user-preferences/travel",
        "tags": ["zug", "reise"],
        "metadata": {"k": "v"},
        "importance": 0.9,
        "user_id": "ada@example.org",
        "agent_id": "planner",
    }
    source = {"session_id": "s/1", "seq": 3, "speaker": "Ada", "role": "user"}
    memory = await agent.save(
        "Ada likes trains.", **fields, source=source, occurred_at="2024-05-06T07:08:09.5+02:00"
    )
    assert memory.items() >= fields.items()
    assert memory["source"] == source
    assert memory["occurred_at"] == "2024-05-06T05:08:09.500000Z"


async def test_an_id_that_is_in_use_is_replaced_by_another(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    used_id = (await agent.save("first"))["id"]
    token_hex, forced_ids = secrets.token_hex, [used_id]
    monkeypatch.setattr(
        secrets, "token_hex", lambda size: forced_ids.pop() if size == 6 and forced_ids else token_hex(size)
    )
    second = await agent.save("second")
    assert forced_ids == []
    assert second["id"] != used_id
    assert (await agent.memory(used_id))["content"] == "first"


async def test_a_save_is_found_by_the_next_request(agent: Agent) -> None:
    """IX3: the keyword point is written before the response."""
    for n in range(10):
        memory = await agent.save(f"the answer is number{n}")
        assert (await agent.search(f"number{n}"))["results"][0]["id"] == memory["id"]


@pytest.mark.parametrize(
    "variant", ["Ada likes trains.", "  ada  LIKES\n\ttrains.\u00a0", "ADA LIKES TRAINS."]
)
async def test_a_text_that_differs_in_case_and_spaces_only_reinforces(agent: Agent, variant: str) -> None:
    first = await agent.save("Ada likes trains.", tags=["a", "b"], importance=0.4)
    source = {"session_id": "s", "seq": 1, "speaker": None, "role": None}
    second = await agent.save(variant, tags=["b", "c"], importance=0.7, source=source)
    third = await agent.save(variant, importance=0.1, source=source)
    assert first["id"] == second["id"] == third["id"]
    assert second["content"] == "Ada likes trains."
    assert (second["tags"], second["importance"], second["reinforcement_count"]) == (["a", "b", "c"], 0.7, 2)
    assert (third["tags"], third["importance"], third["reinforcement_count"]) == (["a", "b", "c"], 0.7, 3)
    assert third["source"] == source
    assert first["last_seen_at"] < second["last_seen_at"] < third["last_seen_at"]
    assert third["created_at"] == first["created_at"]
    assert [change["action"] for change in await agent.history(first["id"])] == [
        "created",
        "reinforced",
        "reinforced",
    ]


async def test_a_tag_that_a_duplicate_added_finds_the_memory(agent: Agent) -> None:
    memory = await agent.save("Ada likes trains.")
    await agent.save("Ada likes trains.", tags=["rolling-stock"])
    assert (await agent.search("rolling stock"))["results"][0]["id"] == memory["id"]
    assert (await agent.search("trains", tags=["rolling-stock"]))["results"][0]["id"] == memory["id"]


async def test_the_same_text_in_another_scope_or_at_another_time_is_a_new_memory(agent: Agent) -> None:
    variations: list[dict[str, Any]] = [
        {},
        {"occurred_at": "2024-01-01T00:00:00Z"},
        {"occurred_at": "2025-01-01T00:00:00Z"},
        {"user_id": "u"},
        {"user_id": "v"},
        {"agent_id": "b"},
        {"agent_id": "b", "user_id": "u"},
    ]
    ids = {(await agent.save("It rained.", **fields))["id"] for fields in variations}
    assert len(ids) == len(variations)
    reinforced = await agent.save("It rained.", occurred_at="2024-01-01T01:00:00+01:00")
    assert reinforced["reinforcement_count"] == 2


async def test_twenty_concurrent_saves_of_one_text_make_one_memory_that_counts_twenty(
    agent: Agent, gateway: Gateway
) -> None:
    saved_memories = await asyncio.gather(
        *(agent.save("Ada likes trains.", tags=[f"t{n}"]) for n in range(20))
    )
    assert len({memory["id"] for memory in saved_memories}) == 1
    memory = await agent.memory(saved_memories[0]["id"])
    assert memory["reinforcement_count"] == 20
    assert sorted(memory["tags"]) == sorted(f"t{n}" for n in range(20))
    assert await sql(gateway, "SELECT count(*) FROM memory") == [(1,)]
    assert await agent.search_contents("trains") == ["Ada likes trains."]


async def test_concurrent_batches_with_the_same_texts_in_other_orders_do_not_deadlock(agent: Agent) -> None:
    facts = [{"content": f"fact {n}", "user_id": f"u{n % 3}"} for n in range(30)]
    orders = [facts, facts[::-1], facts[15:] + facts[:15], facts[::2] + facts[1::2]]
    async with asyncio.timeout(30):
        batch_results = await asyncio.gather(*(save_batch(agent, *order) for order in orders))
    ids_by_content = [{memory["content"]: memory["id"] for memory in results} for results in batch_results]
    assert all(ids == ids_by_content[0] for ids in ids_by_content)
    counts = {
        (await agent.memory(memory_id))["reinforcement_count"] for memory_id in ids_by_content[0].values()
    }
    assert counts == {4}


async def test_duplicates_within_a_batch_become_one_memory(agent: Agent) -> None:
    bodies: list[dict[str, Any]] = [
        {"content": "one", "tags": ["a"], "importance": 0.2},
        {"content": "two"},
        {"content": " ONE ", "tags": ["b"], "importance": 0.6},
    ]
    first, second, duplicate = await save_batch(agent, *bodies)
    assert first["id"] == duplicate["id"] != second["id"]
    memory = await agent.memory(first["id"])
    assert (memory["reinforcement_count"], memory["tags"], memory["importance"]) == (2, ["a", "b"], 0.6)


async def test_items_of_a_batch_are_independent(agent: Agent, gateway: Gateway) -> None:
    """An invalid item is answered with its field and rule, and nothing of it is stored."""
    invalid_bodies: list[dict[str, Any]] = [
        {"content": " "},
        {"content": "x", "category": "../x"},
        {"content": "x", "importance": 2},
        {"content": "x", "unknown": 1},
        {"content": "a\x00b"},
        {"content": "\ud800"},
        {"content": "x", "\x00": 1},
        {},
    ]
    results = await save_batch(agent, {"content": "good"}, *invalid_bodies, {"content": "fine"})
    assert [result.get("content") for result in results] == ["good", *[None] * len(invalid_bodies), "fine"]
    assert all(
        result["status"] == 422 and result["errors"][0]["field"] and result["errors"][0]["rule"]
        for result in results[1:-1]
    )
    assert {row.content for row in await sql(gateway, "SELECT content FROM memory")} == {"good", "fine"}
    problems = await save_batch(agent, *invalid_bodies, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    assert len(problems) == len(invalid_bodies)


@pytest.mark.parametrize(
    "category", ["../x", "/abs", "", " ", "a//b", "a/", "a b", "é", "a\n", "a/..", "x" * 257]
)
async def test_an_invalid_category_is_refused_and_nothing_is_stored(
    agent: Agent, gateway: Gateway, category: str
) -> None:
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if len(category) > 256 else HTTPStatus.UNPROCESSABLE_ENTITY
    body = {"content": "x", "category": category}
    problem = await agent.request("POST", "/v1/memories", json=body, status=status)
    assert problem["errors"][0]["field"] == "category"
    assert problem["errors"][0]["rule"].startswith("must ")
    assert await sql(gateway, "SELECT 1 FROM memory UNION ALL SELECT 1 FROM job") == []


async def test_saving_the_text_of_an_archived_raw_memory_reinforces_its_successors(
    agent: Agent, gateway: Gateway
) -> None:
    raw, successors = await agent.save("raw words"), [await agent.save(f"successor {n}") for n in range(2)]
    ids = [successor["id"] for successor in successors]
    archive_statement = (
        "UPDATE memory SET state = 'archived', archived_at = now(), superseded_by = :ids WHERE id = :id"
    )
    await sql(gateway, archive_statement, ids=ids, id=raw["id"])
    reinforced = await agent.save("RAW words")
    assert reinforced["id"] in ids
    assert [(await agent.memory(memory_id))["reinforcement_count"] for memory_id in ids] == [2, 2]
    assert (await agent.memory(raw["id"]))["reinforcement_count"] == 1
    assert await sql(gateway, "SELECT count(*) FROM memory") == [(3,)]


async def test_an_archived_text_without_successors_is_saved_as_a_new_memory(
    agent: Agent, gateway: Gateway
) -> None:
    raw = await agent.save("raw words")
    await sql(
        gateway, "UPDATE memory SET state = 'archived', archived_at = now() WHERE id = :id", id=raw["id"]
    )
    assert (await agent.save("raw words"))["id"] != raw["id"]


async def test_an_idempotent_replay_returns_the_same_response_and_never_reinforces(agent: Agent) -> None:
    headers, body = {"idempotency-key": "k"}, {"content": "once"}
    status = HTTPStatus.CREATED
    first = await agent.request("POST", "/v1/memories", json=body, headers=headers, status=status)
    second = await agent.request("POST", "/v1/memories", json=body, headers=headers, status=status)
    assert second == first
    assert (await agent.memory(first["id"]))["reinforcement_count"] == 1
    other_body = {"content": "other"}
    await agent.request("POST", "/v1/memories", json=other_body, headers=headers, status=HTTPStatus.CONFLICT)
    assert await agent.search_contents("other") == []


async def test_concurrent_requests_with_one_idempotency_key_are_carried_out_once(
    agent: Agent, gateway: Gateway
) -> None:
    async def send() -> tuple[int, str | None]:
        headers = {"idempotency-key": "same"}
        response = await agent.client.post("/v1/memories", json={"content": "same"}, headers=headers)
        return response.status_code, response.headers.get("retry-after")

    responses = await asyncio.gather(*(send() for _ in range(10)))
    assert {status for status, _ in responses} <= {201, 409}
    assert all(retry_after for status, retry_after in responses if status == 409)
    assert 201 in {status for status, _ in responses}
    assert await sql(gateway, "SELECT reinforcement_count FROM memory") == [(1,)]


async def test_nothing_is_pending_without_models(agent: Agent, gateway: Gateway) -> None:
    """IX4: without models, keyword search is complete and not degraded."""
    memory = await agent.save("plain")
    await gateway.resources.index_writer.close()
    status = await agent.request("GET", "/v1/status")
    assert {name: status["pending"][name] for name in ("enrichment", "embedding", "index")} == {
        "enrichment": 0,
        "embedding": 0,
        "index": 0,
    }
    response = await agent.search("plain")
    assert (response["stages"], response["degraded"]) == (["bm25"], [])
    assert memory["state"] == "final"
