"""Erasing a user: a receipt, and nothing of theirs anywhere."""

import json
from http import HTTPStatus

from tests.journey.agent import Agent, Json, word


async def _live(agent: Agent, user: str, agent_id: str, secret: str) -> Json:
    """Leave something of a user in every place that keeps things."""
    session = await agent.session(user_id=user, agent_id=agent_id)
    saved = await agent.save(f"They love {secret}.", user_id=user, agent_id=agent_id, category="likes")
    once = word()
    await agent.context(session, f"Tell me of {secret}.", once=once)
    await agent.say(session, f"It is {secret}.")
    await agent.put(f"session/{session}/note", f"about {secret}")
    await agent.settled()
    return {"session": session, "id": saved["id"], "once": once, "user": user, "agent_id": agent_id}


async def _everything(agent: Agent, life: Json, secret: str) -> list[str]:
    """Return every response that could show what a user left."""
    scope = {"user_id": life["user"], "agent_id": life["agent_id"]}
    responses = [
        await agent.client.post("/v1/memories/search", json={"query": secret, **scope}),
        await agent.client.post("/v1/memories/search", json={"query": secret, "state": "archived", **scope}),
        await agent.client.post("/v1/turns/search", json={"query": secret, **scope}),
        await agent.client.post("/v1/working/search", json={"query": secret}),
        await agent.client.get("/v1/working", params={"prefix": f"session/{life['session']}"}),
        await agent.client.get(f"/v1/working/session/{life['session']}/note"),
        await agent.client.get("/v1/memories", params=scope),
        await agent.client.get("/v1/memories/categories", params=scope),
        await agent.client.get("/v1/memories/export", params=scope),
        await agent.client.get(f"/v1/memories/{life['id']}"),
        await agent.client.get(f"/v1/memories/{life['id']}/history"),
        await agent.client.get(f"/v1/sessions/{life['session']}"),
        await agent.client.get(f"/v1/sessions/{life['session']}/turns"),
        await agent.client.get("/v1/sessions"),
        await agent.client.post(
            f"/v1/sessions/{life['session']}/context",
            json={"message": f"Tell me of {secret}."},
            headers={"idempotency-key": life["once"]},
        ),
    ]
    return [response.text for response in responses]


async def test_lt13_erasing_a_user_leaves_nothing_and_counts_what_went(agent: Agent) -> None:
    secrets = {"one": word(), "two": word(), "kept": word()}
    gone = [await _live(agent, "ada", name, secrets[name]) for name in ("one", "two")]
    kept = await _live(agent, "bob", "one", secrets["kept"])
    receipt = await agent.ask("DELETE", "/v1/users/ada")
    assert receipt["user_id"] == "ada"
    assert receipt["stores"] == {"postgres": "done", "redis": "done", "qdrant": "done"}
    expected = {"memories": 2, "archived": 0, "history": 2, "sessions": 2, "turns": 4, "working_entries": 2}
    assert receipt["erased"].items() >= (expected | {"stored_responses": 2}).items()
    for life in gone:
        secret = secrets[life["agent_id"]]
        assert not any(secret in response for response in await _everything(agent, life, secret))
    assert any(secrets["kept"] in response for response in await _everything(agent, kept, secrets["kept"]))
    again = await agent.ask("DELETE", "/v1/users/ada")
    assert not any(again["erased"].values())


async def test_lt13_what_enrichment_made_of_a_users_words_is_erased_too(agent_with_model: Agent) -> None:
    secret = word()
    raw = await agent_with_model.save(f"Hello. Ada collects {secret}. Ada lives at {secret} road.", user_id="ada")
    await agent_with_model.settled()
    successors = (await agent_with_model.memory(raw["id"]))["superseded_by"]
    assert len(successors) == 2
    receipt = await agent_with_model.ask("DELETE", "/v1/users/ada")
    assert (receipt["erased"]["memories"], receipt["erased"]["archived"]) == (3, 1)
    for one in (raw["id"], *successors):
        await agent_with_model.ask("GET", f"/v1/memories/{one}", status=HTTPStatus.NOT_FOUND)
    assert json.dumps(await agent_with_model.search(secret, user_id="ada")).count(secret) == 0


async def test_lt13_erasing_a_user_overtakes_the_enrichment_of_their_words(agent_with_model: Agent) -> None:
    secret = word()
    for place in range(20):
        await agent_with_model.save(f"Hello {place}. The {secret} number is {place}.", user_id="ada")
    await agent_with_model.ask("DELETE", "/v1/users/ada")
    await agent_with_model.settled()
    assert (await agent_with_model.search(secret, user_id="ada"))["results"] == []
    listed = await agent_with_model.ask("GET", "/v1/memories", params={"user_id": "ada"})
    assert listed["results"] == []
