"""What passes derive is trusted as its evidence; text from outside gets no leading label (GD6, GD7)."""

import json
from typing import Any

import pytest

from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.draining import drain
from tests.integration.dreams.conftest import run_dream
from tests.integration.mining.conftest import fact, propose
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

LYON, NEUVE = "Ada lives in Lyon at 12 Rue Neuve.", "Ada's home is 12 Rue Neuve in Lyon."
BOTH = "Ada lives in Lyon; her home is at 12 Rue Neuve."
AISLE = "Ada wants an aisle seat."


@pytest.fixture
def agent(model_gateway: Gateway) -> Agent:
    return Agent(model_gateway.client, model_gateway.tenant)


async def say(agent: Agent, *turns: tuple[str, str, str | None], user_id: str | None = None) -> str:
    """Open a session with these turns, each with its role, its content and the trust that is asked for."""
    session = await agent.session(user_id=user_id)
    for role, content, trust in turns:
        body = {"role": role, "content": content} | ({"trust": trust} if trust else {})
        await agent.request("POST", f"/v1/sessions/{session}/turns", json=body, status=201)
    return session


async def origins(agent: Agent) -> dict[str, Json]:
    """Return the origins of the live memories, by their contents."""
    listed = (await agent.request("GET", "/v1/memories", params={"user_id": "ada"}))["results"]
    return {memory["content"]: memory["origin"] for memory in listed}


async def merge(
    gateway: Gateway, agent: Agent, models: ModelServer, first: Json, second: Json
) -> tuple[Json, dict[str, Json]]:
    """Save two memories with these fields, let a model merge them, and return the pass and the origins.

    The first is saved twice: a merge without a category has that of the most reinforced memory.
    """
    await agent.save(LYON, enrich=False, **first)
    ids = [
        (await agent.save(content, enrich=False, **fields))["id"]
        for content, fields in ((LYON, first), (NEUVE, second))
    ]
    saved = {"content": BOTH, "category": None, "tags": [], "sourceIds": ids}
    models.chat_default = Reply(json.dumps({"toDelete": [], "toSave": [saved]}))
    run = await run_dream(gateway, passes=["consolidate"])
    return dict(run["passes"][0]), await origins(agent)


async def test_a_merge_is_trusted_as_its_least_trusted_source(
    model_gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    _, found = await merge(model_gateway, agent, models, {"trust": "agent"}, {"trust": "user"})
    assert found == {BOTH: {"channel": "model", "trust": "user"}}


@pytest.mark.parametrize("label", [{"importance": 0.9}, {"category": "user-preferences/home"}])
async def test_a_merge_gives_text_from_outside_no_label_of_another(
    model_gateway: Gateway, agent: Agent, models: ModelServer, label: Json
) -> None:
    label = {"trust": "user"} | label
    pass_, found = await merge(model_gateway, agent, models, label, {"trust": "outside"})
    assert {rejection["code"] for rejection in pass_["rejections"]} == {"untrusted"}
    assert found.keys() == {LYON, NEUVE}


async def test_of_memories_that_differ_in_punctuation_the_most_trusted_vouches_for_the_words(
    model_gateway: Gateway, agent: Agent
) -> None:
    await agent.save("Ada lives in Lyon.", enrich=False, trust="outside")
    await agent.save("Ada lives in Lyon", enrich=False, trust="user")
    await run_dream(model_gateway, passes=["deduplicate"])
    assert [origin["trust"] for origin in (await origins(agent)).values()] == ["user"]


async def test_a_rewriting_is_trusted_as_its_note(
    model_gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    models.chat_default = Reply(json.dumps([{"content": "Ada owns a boat."}]))
    await agent.save("Ada has a boat.", trust="user")
    await drain(model_gateway.resources)
    assert await origins(agent) == {"Ada owns a boat.": {"channel": "model", "trust": "user"}}


@pytest.mark.parametrize(
    ("turns", "sources", "trust"),
    [
        ([("user", AISLE, None)], [1], "user"),
        ([("user", AISLE, "outside")], [1], "outside"),
        ([("assistant", "Ada, an aisle seat?", None), ("user", "Yes, please.", None)], [1, 2], "user"),
    ],
)
async def test_a_mined_fact_is_trusted_as_the_turns_that_say_it(
    model_gateway: Gateway,
    agent: Agent,
    models: ModelServer,
    turns: list[tuple[str, str, str | None]],
    sources: list[int],
    trust: str,
) -> None:
    session = await say(agent, *turns, user_id="ada")
    models.chat_default = propose(fact(AISLE, *((session, seq) for seq in sources)))
    run = await run_dream(model_gateway, passes=["mine_facts"], user_id="ada")
    assert await origins(agent) == {AISLE: {"channel": "model", "trust": trust}}, run


@pytest.mark.parametrize("trust", [None, "outside"])
async def test_no_preference_is_inferred_from_outside(
    model_gateway: Gateway, agent: Agent, models: ModelServer, trust: str | None
) -> None:
    session = await say(agent, ("user", AISLE, trust), ("user", "Hurry up.", None))
    mark = {"key": "seat", "content": AISLE, "level": "very irritated", "sessionId": session, "seqs": [1]}
    models.chat_default = Reply(json.dumps({"occurrences": [mark]}))
    await run_dream(model_gateway, passes=["infer_preferences"])
    expected = {"channel": "model", "trust": "user"}
    assert await origins(agent) == ({} if trust else {AISLE: expected})
    listed = (await agent.request("GET", "/v1/preferences"))["results"]
    assert [item["origin"] for item in listed] == ([] if trust else [expected])


@pytest.mark.parametrize("trust", [None, "outside"])
async def test_text_from_outside_corrects_nobody(agent: Agent, trust: str | None) -> None:
    await say(agent, ("user", "No, that's wrong.", trust))
    corrections = await agent.request("GET", "/v1/feedback", params={"type": "Correction"})
    assert len(corrections["results"]) == (0 if trust else 1)


async def test_an_anti_pattern_comes_from_what_a_user_said(
    model_gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    session = await say(agent, ("user", "No, that's wrong.", None))
    text = "Don't book window seats because Ada is tall \u2014 instead book the aisle."
    models.chat_default = Reply(json.dumps({"toSave": [{"content": text, "sessionIds": [session]}]}))
    await run_dream(model_gateway, passes=["mine_anti_patterns"])
    assert await origins(agent) == {text: {"channel": "model", "trust": "user"}}


def story(content: str, **fields: Any) -> Json:
    return {"content": content, "category": "episodic/task", "importance": 0.5} | fields


@pytest.mark.parametrize(("role", "trust"), [("user", "user"), ("assistant", "outside")])
async def test_an_episode_is_trusted_as_its_turns(
    model_gateway: Gateway, agent: Agent, models: ModelServer, role: str, trust: str
) -> None:
    session = await say(agent, (role, "The repair held.", None))
    reply = {"toSave": [story("The repair held.", sourceSessions=[session])], "toUpdate": []}
    models.chat_default = Reply(json.dumps(reply))
    await run_dream(model_gateway, passes=["extract_episodes"])
    assert await origins(agent) == {"The repair held.": {"channel": "model", "trust": trust}}


@pytest.mark.parametrize(
    ("role", "importance", "contents"),
    [
        ("user", 0.9, {"The repair failed, then it held."}),
        ("assistant", 0.5, {"The repair failed, then it held."}),
        ("assistant", 0.9, {"The repair failed."}),
    ],
)
async def test_turns_from_outside_continue_no_episode_that_a_caller_has_marked(
    model_gateway: Gateway,
    agent: Agent,
    models: ModelServer,
    role: str,
    importance: float,
    contents: set[str],
) -> None:
    text = "The repair failed."
    episode = await agent.save(text, category="episodic/task", importance=importance, enrich=False)
    session = await say(agent, (role, "Then it held.", None))
    update = story("The repair failed, then it held.", id=episode["id"], sourceSessions=[session])
    models.chat_default = Reply(json.dumps({"toSave": [], "toUpdate": [update]}))
    await run_dream(model_gateway, passes=["extract_episodes"])
    assert (await origins(agent)).keys() == contents


@pytest.mark.parametrize(("role", "trust"), [("user", "user"), ("assistant", "outside")])
async def test_a_triple_is_trusted_as_the_turns_that_say_it(
    model_gateway: Gateway, agent: Agent, models: ModelServer, role: str, trust: str
) -> None:
    session = await say(agent, (role, "Alice works on RockBot.", None))
    source = [[session, 1]]
    entities = [{"name": name, "type": "Topic", "sources": source} for name in ("Alice", "RockBot")]
    triple = {"subject": "Alice", "predicate": "works_on", "object": "RockBot", "sources": source}
    models.chat_default = Reply(json.dumps({"entities": entities, "triples": [triple]}))
    await run_dream(model_gateway, passes=["extract_entities"])
    [found] = (await agent.request("GET", "/v1/graph/triples"))["results"]
    assert found["origin"] == {"channel": "model", "trust": trust}
