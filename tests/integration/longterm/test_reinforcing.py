"""LT9: what a memory gains when the same is saved again, directly or through what it became."""

import json
from typing import Any

import pytest

from shared.memory.longterm.memory import MAX_REINFORCEMENT_COUNT
from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.longterm.changed_rows import archive


async def save(agent: Agent, content: str, **fields: Any) -> str:
    return str((await agent.save(content, enrich=False, **fields))["id"])


async def test_saving_the_text_of_a_raw_of_a_raw_reinforces_what_it_became_at_last(gateway: Gateway) -> None:
    agent = Agent(gateway.client, gateway.tenant)
    first, second, third, last = [await save(agent, f"Text {number}.") for number in range(4)]
    for old, new in ((first, second), (second, third), (third, last)):
        await archive(gateway, old, new)

    saved = await agent.save("text 0.", enrich=False, tags=["new"], importance=0.9)

    assert saved["id"] == last
    memory = await agent.memory(last)
    assert (memory["tags"], memory["importance"], memory["reinforcement_count"]) == (["new"], 0.9, 2)
    history = (await gateway.client.get(f"/v1/memories/{last}/history")).json()["results"]
    assert history[-1]["action"] == "reinforced"
    assert history[-1]["after"]["tags"] == ["new"]
    found = await gateway.client.post("/v1/memories/search", json={"query": "text", "tags": ["new"]})
    assert [hit["id"] for hit in found.json()["results"]] == [last], "the index knows the tag"


async def test_every_successor_gains_tags_importance_and_sources(gateway: Gateway) -> None:
    agent = Agent(gateway.client, gateway.tenant)
    raw, first, second = [await save(agent, text) for text in ("Raw.", "One.", "Two.")]
    await archive(gateway, raw, first, second)
    source = {"session_id": "trip", "seq": 3}

    await agent.save("RAW.", enrich=False, tags=["t"], importance=0.8, source=source)

    for memory_id in (first, second):
        memory = await agent.memory(memory_id)
        assert (memory["tags"], memory["importance"], memory["reinforcement_count"]) == (["t"], 0.8, 2)
        assert [item["session_id"] for item in memory["sources"]] == ["trip"]


async def test_a_cycle_of_successors_ends_and_the_text_becomes_a_new_memory(gateway: Gateway) -> None:
    agent = Agent(gateway.client, gateway.tenant)
    first, second = await save(agent, "One."), await save(agent, "Two.")
    await archive(gateway, first, second)
    await archive(gateway, second, first)

    saved = await agent.save("One.", enrich=False)

    assert saved["id"] not in {first, second}
    assert saved["state"] == "final"


async def test_tags_never_grow_past_the_limit_and_the_newest_are_kept(gateway: Gateway) -> None:
    agent = Agent(gateway.client, gateway.tenant)
    old = [f"old-{number}" for number in range(63)]
    memory_id = await save(agent, "Many tags.", tags=["anti-pattern", *old])
    new = [f"new-{number}" for number in range(40)]

    saved = await agent.save("Many tags.", enrich=False, tags=new)

    assert saved["id"] == memory_id
    assert saved["tags"] == ["anti-pattern", *old[40:], *new]
    assert (await gateway.client.patch(f"/v1/memories/{memory_id}", json={"importance": 0.7})).is_success


async def test_tags_of_equal_texts_in_one_batch_stay_within_the_limit(gateway: Gateway) -> None:
    batch = [
        {"content": "Many tags.", "tags": [f"{name}-{number}" for number in range(50)], "enrich": False}
        for name in ("a", "b")
    ]
    response = await gateway.client.post("/v1/memories/batch", json={"memories": batch})
    [tags] = {tuple(memory["tags"]) for memory in response.json()["results"]}
    assert len(tags) == 64
    assert tags[-1] == "b-49"


async def test_the_history_of_a_reinforcement_has_the_tags_after_it(gateway: Gateway) -> None:
    agent = Agent(gateway.client, gateway.tenant)
    memory_id = await save(agent, "Tagged.", tags=["a"])
    await agent.save("Tagged.", enrich=False, tags=["b"])
    history = (await gateway.client.get(f"/v1/memories/{memory_id}/history")).json()["results"]
    assert [item["after"]["tags"] for item in history] == [["a"], ["a", "b"]]


@pytest.mark.parametrize("is_archived", [False, True])
async def test_a_memory_that_was_observed_as_often_as_can_be_counted_can_be_saved_again(
    gateway: Gateway, *, is_archived: bool
) -> None:
    """Nobody observes a memory so often, but a line of an import may say so."""
    agent = Agent(gateway.client, gateway.tenant)
    memory_id = "0123456789ab"
    line = {"id": memory_id, "content": "Often said.", "reinforcement_count": MAX_REINFORCEMENT_COUNT}
    await agent.request("POST", "/v1/memories/import", content=json.dumps(line))
    if is_archived:
        raw = await save(agent, "It was said otherwise.")
        await archive(gateway, raw, memory_id)
    text = "It was said otherwise." if is_archived else "Often said."

    saved = await agent.save(text, enrich=False, tags=["new"])

    assert (saved["id"], saved["reinforcement_count"]) == (memory_id, MAX_REINFORCEMENT_COUNT)
    assert (await agent.memory(memory_id))["tags"] == ["new"]
