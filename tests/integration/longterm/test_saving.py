"""LT1, LT2, LT3, LT9: what a save answers, and that the same fact is kept once however often it is said."""

import asyncio
import json
import re
import secrets
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import text

from tests.conftest import Gateway
from tests.journey.agent import Agent

NEW: dict[str, Any] = {
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
}


async def sql(gateway: Gateway, statement: str, **values: Any) -> list[Any]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as connection:
        result = await connection.execute(text(statement), values)
        return list(result) if result.returns_rows else []


async def batch(
    agent: Agent, *bodies: dict[str, Any], status: int = HTTPStatus.CREATED
) -> list[dict[str, Any]]:
    content = json.dumps({"memories": list(bodies)})  # ASCII: httpx refuses to write lone surrogates
    headers = {"content-type": "application/json"}
    payload = await agent.request(
        "POST", "/v1/memories/batch", content=content, headers=headers, status=status
    )
    return list(payload["results"])


async def test_a_new_memory_has_an_id_of_twelve_hex_digits_and_the_defaults(agent: Agent) -> None:
    entry = await agent.save("Ada likes trains.")
    assert re.fullmatch("[0-9a-f]{12}", entry["id"])
    assert entry.items() >= NEW.items()
    assert entry["content"] == "Ada likes trains."
    assert entry["created_at"] == entry["last_seen_at"]
    assert await agent.memory(entry["id"]) == entry


async def test_every_field_of_a_save_is_stored(agent: Agent) -> None:
    payload = {
        "category": "user-preferences/travel",
        "tags": ["zug", "reise"],
        "metadata": {"k": "v"},
        "importance": 0.9,
        "user_id": "ada@example.org",
        "agent_id": "planner",
    }
    source = {"session_id": "s/1", "seq": 3, "speaker": "Ada", "role": "user"}
    entry = await agent.save(
        "Ada likes trains.", **payload, source=source, occurred_at="2024-05-06T07:08:09.5+02:00"
    )
    assert entry.items() >= payload.items()
    assert entry["source"] == source
    assert entry["occurred_at"] == "2024-05-06T05:08:09.500000Z"


async def test_an_id_that_is_taken_is_drawn_again(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = (await agent.save("first"))["id"]
    draw, draws = secrets.token_hex, [taken]
    monkeypatch.setattr(secrets, "token_hex", lambda size: draws.pop() if size == 6 and draws else draw(size))
    second = await agent.save("second")
    assert draws == []
    assert second["id"] != taken
    assert (await agent.memory(taken))["content"] == "first"


async def test_a_save_is_found_by_the_very_next_request(agent: Agent) -> None:
    """IX3."""
    for n in range(10):
        saved = await agent.save(f"the answer is number{n}")
        assert (await agent.search(f"number{n}"))["results"][0]["id"] == saved["id"]


@pytest.mark.parametrize(
    "repeated", ["Ada likes trains.", "  ada  LIKES\n\ttrains.\u00a0", "ADA LIKES TRAINS."]
)
async def test_the_same_text_but_for_case_and_spaces_reinforces(agent: Agent, repeated: str) -> None:
    first = await agent.save("Ada likes trains.", tags=["a", "b"], importance=0.4)
    source = {"session_id": "s", "seq": 1, "speaker": None, "role": None}
    second = await agent.save(repeated, tags=["b", "c"], importance=0.7, source=source)
    third = await agent.save(repeated, importance=0.1, source=source)
    assert first["id"] == second["id"] == third["id"]
    assert second["content"] == "Ada likes trains."
    assert (second["tags"], second["importance"], second["reinforcement_count"]) == (["a", "b", "c"], 0.7, 2)
    assert (third["tags"], third["importance"], third["reinforcement_count"]) == (["a", "b", "c"], 0.7, 3)
    assert third["source"] == source
    assert first["last_seen_at"] < second["last_seen_at"] < third["last_seen_at"]
    assert third["created_at"] == first["created_at"]
    assert [note["action"] for note in await agent.history(first["id"])] == [
        "created",
        "reinforced",
        "reinforced",
    ]


async def test_a_tag_that_a_duplicate_added_finds_the_memory(agent: Agent) -> None:
    entry = await agent.save("Ada likes trains.")
    await agent.save("Ada likes trains.", tags=["rolling-stock"])
    assert (await agent.search("rolling stock"))["results"][0]["id"] == entry["id"]
    assert (await agent.search("trains", tags=["rolling-stock"]))["results"][0]["id"] == entry["id"]


async def test_other_scopes_and_other_times_are_other_facts(agent: Agent) -> None:
    moments: list[dict[str, Any]] = [
        {},
        {"occurred_at": "2024-01-01T00:00:00Z"},
        {"occurred_at": "2025-01-01T00:00:00Z"},
        {"user_id": "u"},
        {"user_id": "v"},
        {"agent_id": "b"},
        {"agent_id": "b", "user_id": "u"},
    ]
    ids = {(await agent.save("It rained.", **more))["id"] for more in moments}
    assert len(ids) == len(moments)
    same = await agent.save("It rained.", occurred_at="2024-01-01T01:00:00+01:00")
    assert same["reinforcement_count"] == 2


async def test_twenty_savers_at_once_make_one_entry_that_was_seen_twenty_times(
    agent: Agent, gateway: Gateway
) -> None:
    saved = await asyncio.gather(*(agent.save("Ada likes trains.", tags=[f"t{n}"]) for n in range(20)))
    assert len({entry["id"] for entry in saved}) == 1
    entry = await agent.memory(saved[0]["id"])
    assert entry["reinforcement_count"] == 20
    assert sorted(entry["tags"]) == sorted(f"t{n}" for n in range(20))
    assert await sql(gateway, "SELECT count(*) FROM memory") == [(1,)]
    assert await agent.search_contents("trains") == ["Ada likes trains."]


async def test_batches_that_say_the_same_in_other_orders_do_not_wait_for_each_other(agent: Agent) -> None:
    facts = [{"content": f"fact {n}", "user_id": f"u{n % 3}"} for n in range(30)]
    orders = [facts, facts[::-1], facts[15:] + facts[:15], facts[::2] + facts[1::2]]
    async with asyncio.timeout(30):
        answers = await asyncio.gather(*(batch(agent, *order) for order in orders))
    by_content = [{memory["content"]: memory["id"] for memory in answer} for answer in answers]
    assert all(ids == by_content[0] for ids in by_content)
    counts = {(await agent.memory(memory))["reinforcement_count"] for memory in by_content[0].values()}
    assert counts == {4}


async def test_duplicates_within_a_batch_fold_into_one(agent: Agent) -> None:
    payload: list[dict[str, Any]] = [
        {"content": "one", "tags": ["a"], "importance": 0.2},
        {"content": "two"},
        {"content": " ONE ", "tags": ["b"], "importance": 0.6},
    ]
    memory, two, repeated = await batch(agent, *payload)
    assert memory["id"] == repeated["id"] != two["id"]
    entry = await agent.memory(memory["id"])
    assert (entry["reinforcement_count"], entry["tags"], entry["importance"]) == (2, ["a", "b"], 0.6)


async def test_items_of_a_batch_are_independent(agent: Agent, gateway: Gateway) -> None:
    """Errors: each bad item is a problem with its field and rule, and nothing of it is stored."""
    bad: list[dict[str, Any]] = [
        {"content": " "},
        {"content": "x", "category": "../x"},
        {"content": "x", "importance": 2},
        {"content": "x", "unknown": 1},
        {"content": "a\x00b"},
        {"content": "\ud800"},
        {"content": "x", "\x00": 1},
        {},
    ]
    answers = await batch(agent, {"content": "good"}, *bad, {"content": "fine"})
    assert [memory.get("content") for memory in answers] == ["good", *[None] * len(bad), "fine"]
    assert all(
        memory["status"] == 422 and memory["errors"][0]["field"] and memory["errors"][0]["rule"]
        for memory in answers[1:-1]
    )
    assert {row.content for row in await sql(gateway, "SELECT content FROM memory")} == {"good", "fine"}
    refused = await batch(agent, *bad, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    assert len(refused) == len(bad)


@pytest.mark.parametrize(
    "category", ["../x", "/abs", "", " ", "a//b", "a/", "a b", "é", "a\n", "a/..", "x" * 257]
)
async def test_a_bad_category_is_refused_and_nothing_is_stored(
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
    raw, successors = await agent.save("raw words"), [await agent.save(f"heir {n}") for n in range(2)]
    ids = [successor["id"] for successor in successors]
    archived = (
        "UPDATE memory SET state = 'archived', archived_at = now(), superseded_by = :ids WHERE id = :id"
    )
    await sql(gateway, archived, ids=ids, id=raw["id"])
    repeated = await agent.save("RAW words")
    assert repeated["id"] in ids
    assert [(await agent.memory(memory))["reinforcement_count"] for memory in ids] == [2, 2]
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


async def test_an_idempotent_replay_answers_the_same_and_never_reinforces(agent: Agent) -> None:
    headers, body = {"idempotency-key": "k"}, {"content": "once"}
    created = HTTPStatus.CREATED
    first = await agent.request("POST", "/v1/memories", json=body, headers=headers, status=created)
    repeated = await agent.request("POST", "/v1/memories", json=body, headers=headers, status=created)
    assert repeated == first
    assert (await agent.memory(first["id"]))["reinforcement_count"] == 1
    other = {"content": "other"}
    await agent.request("POST", "/v1/memories", json=other, headers=headers, status=HTTPStatus.CONFLICT)
    assert await agent.search_contents("other") == []


async def test_concurrent_requests_with_one_idempotency_key_are_done_once(
    agent: Agent, gateway: Gateway
) -> None:
    async def send() -> tuple[int, str | None]:
        headers = {"idempotency-key": "twin"}
        answer = await agent.client.post("/v1/memories", json={"content": "twin"}, headers=headers)
        return answer.status_code, answer.headers.get("retry-after")

    answers = await asyncio.gather(*(send() for _ in range(10)))
    assert {status for status, _ in answers} <= {201, 409}
    assert all(after for status, after in answers if status == 409)
    assert 201 in {status for status, _ in answers}
    assert await sql(gateway, "SELECT reinforcement_count FROM memory") == [(1,)]


async def test_nothing_is_pending_without_a_model(agent: Agent, gateway: Gateway) -> None:
    """IX4."""
    entry = await agent.save("plain")
    await gateway.resources.index_writer.close()
    status = await agent.request("GET", "/v1/status")
    assert {name: status["pending"][name] for name in ("enrichment", "embedding", "index")} == {
        "enrichment": 0,
        "embedding": 0,
        "index": 0,
    }
    answer = await agent.search("plain")
    assert (answer["stages"], answer["degraded"]) == (["bm25"], [])
    assert entry["state"] == "final"
