"""Long-term memory without any model: saved, found, strengthened, changed, forgotten."""

import asyncio
import json
from http import HTTPStatus

from tests.journey.agent import Agent, word
from tests.journey.conftest import NewAgent


async def test_lt3_a_save_is_found_by_keyword_in_the_very_next_request(agent: Agent) -> None:
    for _ in range(5):
        secret = word()
        saved = await agent.save(f"Ada keeps her {secret} in the shed.", tags=["tools"])
        answer = await agent.search(secret)
        assert [one["id"] for one in answer["results"]] == [saved["id"]]
        assert (answer["stages"], answer["degraded"]) == (["bm25"], [])
        assert saved["state"] == "final"


async def test_ix4_without_models_nothing_is_ever_pending(agent: Agent) -> None:
    await agent.save("The office closes at six.")
    await agent.settled()
    status = await agent.ask("GET", "/v1/status")
    assert status["pending"] == {"enrichment": 0, "embedding": 0, "index": 0}
    assert status["oldest_pending_seconds"] == 0


async def test_lt9_twenty_saves_of_one_fact_at_once_make_one_entry_of_strength_twenty(agent: Agent) -> None:
    texts = ["The gate code is 4711.", "the  GATE code\nis 4711."] * 10
    saves = [agent.save(text, tags=[f"tag-{place}"]) for place, text in enumerate(texts)]
    saved = await asyncio.gather(*saves)
    assert len({one["id"] for one in saved}) == 1
    entry = await agent.memory(saved[0]["id"])
    assert entry["reinforcement_count"] == 20
    assert sorted(entry["tags"]) == sorted(f"tag-{place}" for place in range(20))
    assert [one["id"] for one in (await agent.search("gate code"))["results"]] == [entry["id"]]


async def test_lt9_a_replayed_save_does_not_reinforce(agent: Agent) -> None:
    body, once = {"content": "The lift is out of order."}, {"idempotency-key": word()}
    first = await agent.ask("POST", "/v1/memories", json=body, headers=once, status=HTTPStatus.CREATED)
    again = await agent.ask("POST", "/v1/memories", json=body, headers=once, status=HTTPStatus.CREATED)
    assert again == first
    assert (await agent.memory(first["id"]))["reinforcement_count"] == 1


async def test_lt9_a_change_into_a_duplicate_is_refused_and_changes_nothing(agent: Agent) -> None:
    kept = await agent.save("Lunch is at noon.")
    other = await agent.save("Lunch is at one.")
    problem = await agent.ask(
        "PATCH",
        f"/v1/memories/{other['id']}",
        json={"content": "LUNCH is at  noon."},
        status=HTTPStatus.CONFLICT,
    )
    assert kept["id"] in problem["detail"]
    assert (await agent.memory(other["id"]))["content"] == "Lunch is at one."
    assert (await agent.memory(kept["id"]))["reinforcement_count"] == 1


async def test_lt4_a_change_is_found_at_once_by_its_new_words_alone_and_noted(agent: Agent) -> None:
    before, after = word(), word()
    saved = await agent.save(f"The password hint is {before}.")
    await agent.ask("PATCH", f"/v1/memories/{saved['id']}", json={"content": f"The hint is {after}."})
    assert await agent.found(before) == []
    assert await agent.found(after) == [f"The hint is {after}."]
    noted = await agent.history(saved["id"])
    assert len(noted) == 2
    assert before in json.dumps(noted)


async def test_lt4_a_delete_says_what_it_was_and_erases_its_history(agent: Agent) -> None:
    secret = word()
    saved = await agent.save(f"The safe opens with {secret}.")
    gone = await agent.ask("DELETE", f"/v1/memories/{saved['id']}")
    assert gone == {"id": saved["id"], "deleted": True, "content": f"The safe opens with {secret}."}
    await agent.ask("GET", f"/v1/memories/{saved['id']}", status=HTTPStatus.NOT_FOUND)
    await agent.ask("GET", f"/v1/memories/{saved['id']}/history", status=HTTPStatus.NOT_FOUND)
    assert await agent.found(secret) == []
    again = await agent.ask("DELETE", f"/v1/memories/{saved['id']}")
    assert again["deleted"] is False


async def test_lt13_an_explicit_save_brings_a_deleted_fact_back(agent: Agent) -> None:
    saved = await agent.save("The spare key is under the mat.")
    await agent.ask("DELETE", f"/v1/memories/{saved['id']}")
    again = await agent.save("The spare key is under the mat.")
    assert again["id"] != saved["id"]
    assert again["reinforcement_count"] == 1
    assert await agent.found("spare key") == ["The spare key is under the mat."]


async def test_lt14_an_export_is_imported_elsewhere_without_loss(agent: Agent, another: NewAgent) -> None:
    await agent.save("Ada likes trains.", category="user-preferences/travel", tags=["rail"], importance=0.9)
    await agent.save("Ada was in Oslo.", occurred_at="2024-05-01T10:00:00Z", metadata={"from": "mail"})
    exported = await agent.client.get("/v1/memories/export")
    elsewhere = await another()
    report = await elsewhere.ask("POST", "/v1/memories/import", content=exported.content)
    assert report["created"] == 2
    again = await elsewhere.client.get("/v1/memories/export")
    assert again.content == exported.content
    assert await elsewhere.found("trains") == ["Ada likes trains."]
    repeated = await elsewhere.ask("POST", "/v1/memories/import", content=exported.content)
    assert (repeated["created"], repeated["updated"]) == (0, 0)
    assert (await elsewhere.client.get("/v1/memories/export")).content == exported.content
