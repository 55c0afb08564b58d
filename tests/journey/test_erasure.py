"""Erasing a user leaves no record of theirs anywhere, and returns a receipt."""

import json
from http import HTTPStatus

from tests.agent import Agent, Json, random_word


async def _store_records(agent: Agent, user: str, agent_id: str, secret: str) -> Json:
    """Store a record of a user in every database and cache."""
    session = await agent.session(user_id=user, agent_id=agent_id)
    saved = await agent.save(f"They love {secret}.", user_id=user, agent_id=agent_id, category="likes")
    key = random_word()
    await agent.context(session, f"Tell me of {secret}.", idempotency_key=key)
    await agent.append_turn(session, f"It is {secret}.")
    await agent.put(f"session/{session}/note", f"about {secret}")
    await agent.wait_until_idle()
    return {"session": session, "id": saved["id"], "idempotency_key": key, "user": user, "agent_id": agent_id}


async def _read_all(agent: Agent, records: Json, secret: str) -> list[str]:
    """Return every response that could show a record of a user."""
    scope = {"user_id": records["user"], "agent_id": records["agent_id"]}
    responses = [
        await agent.client.post("/v1/memories/search", json={"query": secret, **scope}),
        await agent.client.post("/v1/memories/search", json={"query": secret, "state": "archived", **scope}),
        await agent.client.post("/v1/turns/search", json={"query": secret, **scope}),
        await agent.client.post("/v1/working/search", json={"query": secret}),
        await agent.client.get("/v1/working", params={"prefix": f"session/{records['session']}"}),
        await agent.client.get(f"/v1/working/session/{records['session']}/note"),
        await agent.client.get("/v1/memories", params=scope),
        await agent.client.get("/v1/memories/categories", params=scope),
        await agent.client.get("/v1/memories/export", params=scope),
        await agent.client.get(f"/v1/memories/{records['id']}"),
        await agent.client.get(f"/v1/memories/{records['id']}/history"),
        await agent.client.get(f"/v1/sessions/{records['session']}"),
        await agent.client.get(f"/v1/sessions/{records['session']}/turns"),
        await agent.client.get("/v1/sessions"),
        await agent.client.post(
            f"/v1/sessions/{records['session']}/context",
            json={"message": f"Tell me of {secret}."},
            headers={"idempotency-key": records["idempotency_key"]},
        ),
    ]
    return [response.text for response in responses]


async def test_lt13_erasing_a_user_leaves_nothing_and_counts_what_was_erased(agent: Agent) -> None:
    secrets = {"one": random_word(), "two": random_word(), "kept": random_word()}
    erased = [await _store_records(agent, "ada", name, secrets[name]) for name in ("one", "two")]
    other_records = await _store_records(agent, "bob", "one", secrets["kept"])
    receipt = await agent.request("DELETE", "/v1/users/ada")
    assert receipt["user_id"] == "ada"
    assert receipt["stores"] == {"postgres": "done", "redis": "done", "qdrant": "done"}
    expected = {"memories": 2, "archived": 0, "history": 2, "sessions": 2, "turns": 4, "working_entries": 2}
    assert receipt["erased"].items() >= (expected | {"stored_responses": 2}).items()
    for records in erased:
        secret = secrets[records["agent_id"]]
        assert not any(secret in response for response in await _read_all(agent, records, secret))
    assert any(
        secrets["kept"] in response for response in await _read_all(agent, other_records, secrets["kept"])
    )
    assert await agent.request("DELETE", "/v1/users/ada") == receipt, "the same receipt"


async def test_lt13_memories_that_enrichment_derived_for_a_user_are_erased_too(
    agent_with_model: Agent,
) -> None:
    secret = random_word()
    raw = await agent_with_model.save(
        f"Hello. Ada collects {secret}. Ada lives at {secret} road.", user_id="ada"
    )
    await agent_with_model.wait_until_idle()
    successors = (await agent_with_model.memory(raw["id"]))["superseded_by"]
    assert len(successors) == 2
    receipt = await agent_with_model.request("DELETE", "/v1/users/ada")
    assert (receipt["erased"]["memories"], receipt["erased"]["archived"]) == (3, 1)
    for memory_id in (raw["id"], *successors):
        await agent_with_model.request("GET", f"/v1/memories/{memory_id}", status=HTTPStatus.NOT_FOUND)
    assert json.dumps(await agent_with_model.search(secret, user_id="ada")).count(secret) == 0


async def test_lt13_no_enrichment_that_is_pending_at_an_erasure_stores_anything(
    agent_with_model: Agent,
) -> None:
    secret = random_word()
    for number in range(20):
        await agent_with_model.save(f"Hello {number}. The {secret} number is {number}.", user_id="ada")
    await agent_with_model.request("DELETE", "/v1/users/ada")
    await agent_with_model.wait_until_idle()
    assert (await agent_with_model.search(secret, user_id="ada"))["results"] == []
    listing = await agent_with_model.request("GET", "/v1/memories", params={"user_id": "ada"})
    assert listing["results"] == []
