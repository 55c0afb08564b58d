"""Long-term memory without any model: memories are saved, found, reinforced, updated and deleted."""

import asyncio
import json
from http import HTTPStatus

from tests.agent import Agent, random_word
from tests.journey.conftest import NewAgent


async def test_lt3_a_saved_memory_is_found_by_keyword_in_the_next_request(agent: Agent) -> None:
    for _ in range(5):
        secret = random_word()
        saved = await agent.save(f"Ada keeps her {secret} in the shed.", tags=["tools"])
        response = await agent.search(secret)
        assert [memory["id"] for memory in response["results"]] == [saved["id"]]
        assert (response["stages"], response["degraded"]) == (["bm25"], [])
        assert saved["state"] == "final"


async def test_ix4_without_models_nothing_is_ever_pending(agent: Agent) -> None:
    await agent.save("The office closes at six.")
    await agent.wait_until_idle()
    status = await agent.request("GET", "/v1/status")
    assert set(status["pending"].values()) == {0}
    assert status["oldest_pending_seconds"] == 0


async def test_lt9_twenty_concurrent_saves_of_one_fact_make_one_memory_reinforced_twenty_times(
    agent: Agent,
) -> None:
    texts = ["The gate code is 4711.", "the  GATE code\nis 4711."] * 10
    saves = [agent.save(text, tags=[f"tag-{number}"]) for number, text in enumerate(texts)]
    saved = await asyncio.gather(*saves)
    assert len({memory["id"] for memory in saved}) == 1
    memory = await agent.memory(saved[0]["id"])
    assert memory["reinforcement_count"] == 20
    assert sorted(memory["tags"]) == sorted(f"tag-{number}" for number in range(20))
    assert [hit["id"] for hit in (await agent.search("gate code"))["results"]] == [memory["id"]]


async def test_lt9_a_repeated_save_with_the_same_idempotency_key_does_not_reinforce(agent: Agent) -> None:
    body, headers = {"content": "The lift is out of order."}, {"idempotency-key": random_word()}
    first = await agent.request("POST", "/v1/memories", json=body, headers=headers, status=HTTPStatus.CREATED)
    repeated = await agent.request(
        "POST", "/v1/memories", json=body, headers=headers, status=HTTPStatus.CREATED
    )
    assert repeated == first
    assert (await agent.memory(first["id"]))["reinforcement_count"] == 1


async def test_lt9_an_update_into_a_duplicate_is_refused_and_changes_nothing(agent: Agent) -> None:
    existing = await agent.save("Lunch is at noon.")
    other = await agent.save("Lunch is at one.")
    problem = await agent.request(
        "PATCH",
        f"/v1/memories/{other['id']}",
        json={"content": "LUNCH is at  noon."},
        status=HTTPStatus.CONFLICT,
    )
    assert existing["id"] in problem["detail"]
    assert (await agent.memory(other["id"]))["content"] == "Lunch is at one."
    assert (await agent.memory(existing["id"]))["reinforcement_count"] == 1


async def test_lt4_an_updated_memory_is_found_at_once_by_its_new_words_only_and_history_has_the_old(
    agent: Agent,
) -> None:
    before, after = random_word(), random_word()
    saved = await agent.save(f"The password hint is {before}.")
    await agent.request("PATCH", f"/v1/memories/{saved['id']}", json={"content": f"The hint is {after}."})
    assert await agent.search_contents(before) == []
    assert await agent.search_contents(after) == [f"The hint is {after}."]
    history = await agent.history(saved["id"])
    assert len(history) == 2
    assert before in json.dumps(history)


async def test_lt4_a_delete_returns_the_content_and_erases_the_history(agent: Agent) -> None:
    secret = random_word()
    saved = await agent.save(f"The safe opens with {secret}.")
    deleted = await agent.request("DELETE", f"/v1/memories/{saved['id']}")
    assert deleted == {"id": saved["id"], "deleted": True, "content": f"The safe opens with {secret}."}
    await agent.request("GET", f"/v1/memories/{saved['id']}", status=HTTPStatus.NOT_FOUND)
    await agent.request("GET", f"/v1/memories/{saved['id']}/history", status=HTTPStatus.NOT_FOUND)
    assert await agent.search_contents(secret) == []
    repeated = await agent.request("DELETE", f"/v1/memories/{saved['id']}")
    assert repeated["deleted"] is False


async def test_lt13_an_explicit_save_brings_a_deleted_fact_back(agent: Agent) -> None:
    saved = await agent.save("The spare key is under the mat.")
    await agent.request("DELETE", f"/v1/memories/{saved['id']}")
    resaved = await agent.save("The spare key is under the mat.")
    assert resaved["id"] != saved["id"]
    assert resaved["reinforcement_count"] == 1
    assert await agent.search_contents("spare key") == ["The spare key is under the mat."]


async def test_lt14_an_export_is_imported_elsewhere_without_loss(agent: Agent, new_agent: NewAgent) -> None:
    await agent.save("Ada likes trains.", category="user-preferences/travel", tags=["rail"], importance=0.9)
    await agent.save("Ada was in Oslo.", occurred_at="2024-05-01T10:00:00Z", metadata={"from": "mail"})
    exported = await agent.client.get("/v1/memories/export")
    other_agent = await new_agent()
    report = await other_agent.request("POST", "/v1/memories/import", content=exported.content)
    assert report["created"] == 2
    exported_again = await other_agent.client.get("/v1/memories/export")
    assert exported_again.content == exported.content
    assert await other_agent.search_contents("trains") == ["Ada likes trains."]
    repeated = await other_agent.request("POST", "/v1/memories/import", content=exported.content)
    assert (repeated["created"], repeated["updated"]) == (0, 0)
    assert (await other_agent.client.get("/v1/memories/export")).content == exported.content
