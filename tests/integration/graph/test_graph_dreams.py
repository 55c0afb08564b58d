"""DR11: dreams draw the graph of what was said, invalidate what is stale, and can be undone."""

import json
from typing import Any

import pytest

from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.dreams.conftest import (  # noqa: F401  (a fixture)
    create_session,
    list_unread,
    model_gateway,
    run_dream,
)
from tests.integration.graph.conftest import URL, connect, entities, save_entity, triples
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.state import StateInspector


@pytest.fixture
def gateway(model_gateway: Gateway) -> Gateway:  # noqa: F811
    return model_gateway


def _reply(session: str, **fields: Any) -> Reply:
    source = [[session, 1]]
    entity = {"id": None, "name": "Bo Chen", "type": "Person", "aliases": ["Bo"], "sources": source}
    triple: Json = {"subject": "Bo Chen", "predicate": "leads", "object": "Larkspur", "sources": source}
    triple |= {"fact": "Bo Chen leads Larkspur.", "confidence": 0.9, **fields}
    return Reply(json.dumps({"entities": [entity], "triples": [triple]}))


async def _extract(gateway: Gateway, models: ModelServer, reply: Reply) -> Json:
    models.chat_default = reply
    return await run_dream(gateway, passes=["extract_entities"])


async def test_what_was_said_is_drawn_with_its_sources_and_undone(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await save_entity(agent, "Larkspur", type="Project")
    session = await create_session(gateway, "Bo Chen, called Bo, leads Larkspur.")
    run = await _extract(gateway, models, _reply(session))
    [pass_] = run["passes"]
    assert (pass_["state"], pass_["applied"]) == ("done", {"entity_created": 1, "triple_created": 1})
    assert "[e1] Project: Larkspur" in str(models.chat_calls[-1].body)
    [triple] = await triples(agent)
    assert (triple["subject"], triple["predicate"], triple["object"]) == ("Bo Chen", "leads", "Larkspur")
    assert [(source["session_id"], source["seq"]) for source in triple["sources"]] == [(session, 1)]
    assert await list_unread(gateway, pass_["name"]) == []
    diff = (await agent.request("GET", f"/v1/dreams/{run['id']}/diff"))["results"]
    assert {(change["record"], change["action"]) for change in diff} == {
        ("entity", "created"),
        ("triple", "created"),
    }
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert sorted(undone["removed"]) == sorted(change["entry_id"] for change in diff)
    assert [entity["name"] for entity in await entities(agent)] == ["Larkspur"]
    assert await triples(agent) == []


async def test_what_was_undone_or_deleted_is_not_drawn_once_more(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    session = await create_session(gateway, "Bo Chen leads Larkspur.")
    run = await _extract(gateway, models, _reply(session))
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    other = await create_session(gateway, "Bo Chen leads Larkspur, as I said.")
    second = await _extract(gateway, models, _reply(other))
    assert [item["code"] for item in second["passes"][0]["rejections"]] == ["forgotten", "forgotten"]
    assert await entities(agent) == []


async def test_what_was_deleted_is_not_drawn_under_another_name_of_its_entity(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await save_entity(agent, "Bo Chen", aliases=["Bo"])
    await save_entity(agent, "Larkspur", aliases=["The garden"])
    known = await connect(agent, "Bo Chen", "leads", "Larkspur")
    await agent.request("DELETE", f"{URL}/triples/{known['id']}")
    session = await create_session(gateway, "Bo leads the garden.")
    fields = {"subject": "Bo", "object": "The garden", "fact": "Bo leads the garden."}
    run = await _extract(gateway, models, _reply(session, **fields))
    assert "forgotten" in [item["code"] for item in run["passes"][0]["rejections"]]
    assert await triples(agent) == []


async def test_facts_are_read_once_each_and_are_sources(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    source = {"session_id": "talk", "seq": 1}
    fact = await agent.save("Bo Chen leads Larkspur.", source=source, enrich=False)
    triple = {"subject": "Bo Chen", "predicate": "leads", "object": "Larkspur", "sources": [[fact["id"]]]}
    await _extract(gateway, models, Reply(json.dumps({"entities": [], "triples": [triple]})))
    [drawn] = await triples(agent)
    assert [source["memory_id"] for source in drawn["sources"]] == [fact["id"]]
    repeated = await run_dream(gateway, passes=["extract_entities"])
    assert repeated["passes"][0]["state"] == "skipped"
    await agent.request("DELETE", f"/v1/memories/{fact['id']}")
    assert (await triples(agent), await entities(agent)) == ([], [])


async def test_a_repetition_raises_the_confidence_and_adds_the_source_and_an_undo_takes_it_back(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    known = await connect(agent, "Bo Chen", "leads", "Larkspur", confidence=0.4)
    session = await create_session(gateway, "Bo Chen, called Bo, leads Larkspur.")
    run = await _extract(gateway, models, _reply(session))
    [triple] = await triples(agent)
    assert (triple["id"], triple["confidence"]) == (known["id"], 0.9)
    [bo] = await entities(agent, name="Bo")
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert (await triples(agent))[0]["confidence"] == 0.4
    assert await entities(agent, name="Bo") == []
    assert (await agent.request("GET", f"{URL}/entities/{bo['id']}"))["aliases"] == []


async def test_a_dry_run_draws_nothing(agent: Agent, gateway: Gateway, models: ModelServer) -> None:
    session = await create_session(gateway, "Bo Chen leads Larkspur.")
    models.chat_default = _reply(session)
    run = await run_dream(gateway, passes=["extract_entities"], dry_run=True)
    assert run["passes"][0]["proposed"] == ["Bo Chen", "Bo Chen leads Larkspur"]
    assert await entities(agent) == []


async def test_what_is_stale_is_invalidated_and_an_undo_restores_it_for_good(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    doubtful = await connect(agent, "Alice", "may_know", "Bob", confidence=0.3, subject_type="Person")
    certain = await connect(agent, "Alice", "works_on", "RockBot", confidence=0.9)
    await save_entity(agent, "Picnic", type="Event")
    await save_entity(agent, "Orphan")
    await save_entity(agent, "Hermit", type="Person")
    await save_entity(agent, "Seen Topic")
    await agent.request("POST", f"{URL}/match", json={"text": "What of the seen topic?"})
    for table in ("graph_entity", "graph_triple"):
        await inspector.postgres.execute(
            f"UPDATE {table} SET created_at = created_at - interval '15 days' WHERE tenant = $1",  # noqa: S608
            gateway.tenant,
        )
    await connect(agent, "Bob", "may_know", "Carol", confidence=0.1)
    await save_entity(agent, "Young Topic")
    run = await run_dream(gateway, passes=["consolidate_graph"])
    assert run["passes"][0]["applied"] == {"triple_invalidated": 1, "entity_invalidated": 2}
    over = await agent.request("GET", f"{URL}/triples/{doubtful['id']}")
    assert over["reason"] == "low_confidence"
    assert doubtful["id"] not in {triple["id"] for triple in await triples(agent)}
    assert certain["id"] in {triple["id"] for triple in await triples(agent)}
    names = {entity["name"] for entity in await entities(agent)}
    assert names >= {"Hermit", "Seen Topic", "Young Topic", "Alice", "Bob"}
    assert not names & {"Picnic", "Orphan"}
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert len(undone["restored"]) == 3
    assert doubtful["id"] in {triple["id"] for triple in await triples(agent)}
    repeated = await run_dream(gateway, passes=["consolidate_graph"])
    assert repeated["passes"][0]["state"] == "skipped"
