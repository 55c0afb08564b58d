"""KG2 and CV5: when a fact out of a conversation changes, what the graph says by it ends, and can return."""

import json
from typing import Any

import pytest

from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.dreams.conftest import execute_run, model_gateway, run_dream  # noqa: F401  (a fixture)
from tests.integration.graph.conftest import URL, connect, triples
from tests.integration.mining.conftest import JUNE, MARCH, Talker, fact, mining_gateway, propose  # noqa: F401
from tests.integration.mining.home import AARHUS, ODENSE, move_to_odense, tell_of_aarhus
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

MAY, JULY = "2026-05-01T00:00:00Z", "2026-07-01T00:00:00Z"


@pytest.fixture
def talker(mining_gateway: Gateway) -> Talker:  # noqa: F811
    return Talker(mining_gateway)


async def _lives_in(talker: Talker, city: str, *sources: Json, **fields: Any) -> Json:
    triple: Json = {}
    for source in sources:
        triple = await connect(talker, "Ada", "lives_in", city, user_id="ada", source=source, **fields)
    return triple


async def _cities(talker: Talker, **query: Any) -> list[str]:
    return [triple["object"] for triple in await triples(talker, user_id="ada", **query)]


def _turn(session: str) -> Json:
    return {"session_id": session, "seq": 1}


async def test_a_changed_fact_ends_its_triple_and_a_time_before_still_shows_it(
    talker: Talker, models: ModelServer
) -> None:
    session, memory = await tell_of_aarhus(talker, models)
    triple = await _lives_in(talker, "Aarhus", {"memory_id": memory["id"]}, _turn(session))
    _, run = await move_to_odense(talker, models, memory["id"])
    assert run["passes"][0]["applied"]["triple_invalidated"] == 1
    ended = await talker.request("GET", f"{URL}/triples/{triple['id']}")
    closed = await talker.memory(memory["id"])
    assert (ended["reason"], ended["invalid_at"]) == ("memory_closed", closed["valid_until"])
    assert ended["expired_at"] is not None
    assert await _cities(talker) == []
    assert await _cities(talker, as_of=MAY) == ["Aarhus"]
    assert await _cities(talker, as_of=JULY) == []
    changes = [change for change in await talker.diff(run) if change["record"] == "triple"]
    assert [(change["entry_id"], change["action"]) for change in changes] == [(triple["id"], "invalidated")]


async def test_the_undo_of_the_change_lets_the_triple_hold(talker: Talker, models: ModelServer) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    triple = await _lives_in(talker, "Aarhus", {"memory_id": memory["id"]})
    _, run = await move_to_odense(talker, models, memory["id"])
    undone = await talker.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert undone["restored"] == [triple["id"]]
    [held] = await triples(talker, user_id="ada")
    assert (held["id"], held["invalid_at"], held["expired_at"]) == (triple["id"], None, None)


async def test_a_triple_whose_memory_stays_closed_is_not_restored(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    triple = await _lives_in(talker, "Aarhus", {"memory_id": memory["id"]})
    _, run = await move_to_odense(talker, models, memory["id"])
    new = (await talker.facts())[ODENSE]
    await talker.request("PATCH", f"/v1/memories/{new['id']}", json={"tags": ["home"]})
    undone = await talker.request("POST", f"/v1/dreams/{run['id']}/undo")
    reasons = {item["entry_id"]: item["reason"] for item in undone["kept"]}
    assert reasons[triple["id"]] == "the memory that says it stays closed"
    assert await _cities(talker) == []


async def test_what_something_else_says_too_holds_on(talker: Talker, models: ModelServer) -> None:
    session, memory = await tell_of_aarhus(talker, models)
    other = await talker.save("Ada is registered in Aarhus.", user_id="ada", enrich=False)
    for city, source in (
        ("Aarhus", {"memory_id": other["id"]}),
        ("Denmark", {"session_id": "another", "seq": 1}),
        ("Jutland", {"session_id": session}),
        ("Europe", {"session_id": session, "seq": 2}),
    ):
        await _lives_in(talker, city, {"memory_id": memory["id"]}, source)
    await connect(talker, "Ada", "lives_in", "Common", source={"memory_id": memory["id"]})
    await _lives_in(talker, "Nowhere", {"memory_id": memory["id"]}, {"memory_id": "ffffffffffff"})
    await move_to_odense(talker, models, memory["id"])
    assert set(await _cities(talker)) == {"Aarhus", "Denmark", "Jutland", "Europe", "Common"}


async def test_a_caller_who_closes_and_opens_a_memory_ends_and_restores_its_triples(talker: Talker) -> None:
    memory = await talker.save("Ada lives in Aarhus.", user_id="ada", enrich=False)
    path = f"/v1/memories/{memory['id']}"
    triple = await _lives_in(talker, "Aarhus", {"memory_id": memory["id"]}, valid_at=MARCH)
    await talker.request("PATCH", path, json={"valid_until": "2997-01-01T00:00:00Z"})
    assert await _cities(talker) == ["Aarhus"], "it has not ended yet"
    await talker.request("PATCH", path, json={"valid_until": JUNE})
    assert (await _cities(talker), await _cities(talker, as_of=MAY)) == ([], ["Aarhus"])
    await talker.request("PATCH", path, json={"valid_until": MAY})
    ended = await talker.request("GET", f"{URL}/triples/{triple['id']}")
    assert ended["invalid_at"] == MAY
    await talker.request("PATCH", path, json={"valid_until": None})
    [held] = await triples(talker, user_id="ada")
    assert held == triple
    await talker.request("PATCH", path, json={"valid_until": JUNE})
    await _lives_in(talker, "Aarhus")
    repeated = await connect(talker, "Ada", "lives_in", "Aarhus", user_id="ada")
    await talker.request("PATCH", path, json={"valid_until": None})
    assert [item["id"] for item in await triples(talker, user_id="ada")] == [repeated["id"]]


async def test_what_a_caller_has_invalidated_is_not_restored_with_the_memory(talker: Talker) -> None:
    memory = await talker.save("Ada lives in Aarhus.", user_id="ada", enrich=False)
    triple = await _lives_in(talker, "Aarhus", {"memory_id": memory["id"]})
    await talker.request("POST", f"{URL}/triples/{triple['id']}/invalidate", json={"reason": "it is wrong"})
    for valid_until in (JUNE, None):
        await talker.request("PATCH", f"/v1/memories/{memory['id']}", json={"valid_until": valid_until})
    assert await _cities(talker) == []


async def test_withdrawing_what_replaced_a_fact_restores_its_triple(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    await _lives_in(talker, "Aarhus", {"memory_id": memory["id"]})
    session, _ = await move_to_odense(talker, models, memory["id"])
    assert await _cities(talker) == []
    await talker.request("DELETE", f"/v1/sessions/{session}/turns/1")
    assert list(await talker.facts()) == [AARHUS]
    assert await _cities(talker) == ["Aarhus"]


async def test_a_fact_that_was_closed_before_it_was_read_is_drawn_as_over(
    model_gateway: Gateway,  # noqa: F811
    models: ModelServer,
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    source = {"session_id": "talk", "seq": 1}
    memory = await agent.save("Bo Chen leads Larkspur.", source=source, enrich=False)
    await agent.request("PATCH", f"/v1/memories/{memory['id']}", json={"valid_until": JUNE})
    triple = {"subject": "Bo Chen", "predicate": "leads", "object": "Larkspur", "sources": [[memory["id"]]]}
    models.chat_default = Reply(json.dumps({"entities": [], "triples": [triple]}))
    run = await run_dream(model_gateway, passes=["extract_entities"])
    assert await triples(agent) == []
    assert [item["object"] for item in await triples(agent, as_of=MAY)] == ["Larkspur"]
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert await triples(agent, validity="any") == []


async def test_a_dream_ends_what_came_from_a_memory_whose_end_has_come(
    model_gateway: Gateway,  # noqa: F811
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    memory = await agent.save("Bo leads Larkspur.", enrich=False)
    await agent.request("PATCH", f"/v1/memories/{memory['id']}", json={"valid_until": JUNE})
    triple = await connect(agent, "Bo", "leads", "Larkspur", source={"memory_id": memory["id"]})
    run = await run_dream(model_gateway, passes=["consolidate_graph"])
    assert run["passes"][0]["applied"] == {"triple_invalidated": 1}
    assert await triples(agent) == []
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert undone["restored"] == [triple["id"]]
    repeated = await run_dream(model_gateway, passes=["consolidate_graph"])
    assert repeated["passes"][0]["state"] == "skipped"
    assert [item["id"] for item in await triples(agent)] == [triple["id"]]
