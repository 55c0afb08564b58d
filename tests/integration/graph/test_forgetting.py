"""LT13 and FG1 for the graph: what is deleted leaves no copy, and tombstones keep it away."""

import json
from http import HTTPStatus

import pytest

from shared.foundation.origin import UNKNOWN
from shared.foundation.scope import Scope
from shared.memory.graph import entity_queries, save, triple_queries
from shared.memory.graph.entity import EntityDraft
from shared.memory.graph.triple import TripleDraft, TripleSource
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.forgetting.conftest import records_with
from tests.integration.graph.conftest import URL, connect, entities, save_entity, triples
from tests.state import StateInspector

SECRET = "persimmonia"


async def test_deleting_an_entity_erases_it_and_its_triples(
    agent: Agent, inspector: StateInspector, gateway: Gateway
) -> None:
    keyed = {"idempotency-key": "k"}
    body = {"name": SECRET.title(), "aliases": [f"{SECRET} too"], "metadata": {"is": SECRET}}
    entity = await agent.request(
        "POST", f"{URL}/entities", json=body, headers=keyed, status=HTTPStatus.CREATED
    )
    for subject, object_ in ((SECRET, "Alice"), ("Alice", SECRET)):
        triple = {"subject": subject, "predicate": "knows", "object": object_, "fact": SECRET}
        headers = {"idempotency-key": f"to {object_}" if object_ == "Alice" else "from Alice"}
        await agent.request("POST", f"{URL}/triples", json=triple, headers=headers, status=HTTPStatus.CREATED)
    session = await agent.session()
    assert SECRET.title() in str(await agent.context(session, "What of Alice?", idempotency_key="c"))
    answer = await agent.request("DELETE", f"{URL}/entities/{entity['id']}")
    assert answer == {"id": entity["id"], "deleted": True}
    assert await records_with(inspector, gateway, SECRET) == []
    assert await records_with(inspector, gateway, SECRET.title()) == []
    assert [entity["name"] for entity in await entities(agent)] == ["Alice"]
    assert (await agent.request("DELETE", f"{URL}/entities/{entity['id']}"))["deleted"] is False


async def test_what_was_deleted_comes_back_by_a_caller_and_not_by_an_import(agent: Agent) -> None:
    entity = await save_entity(agent, "Alice", aliases=["Ally"])
    triple = await connect(agent, "Bob", "knows", "Carol")
    await agent.request("DELETE", f"{URL}/entities/{entity['id']}")
    await agent.request("DELETE", f"{URL}/triples/{triple['id']}")
    created = {"created_at": "2026-01-01T00:00:00Z"}
    rows = [
        {"kind": "graph_entity", "id": "e", "name": "ally", "type": "Person", **created},
        {
            "kind": "graph_triple",
            "id": "t",
            "subject": "bob",
            "predicate": "knows",
            "object": "carol",
            "confidence": 1,
            **created,
        },
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    options: Json = {"content": content, "headers": {"content-type": "application/x-ndjson"}}
    report = await agent.request("POST", f"{URL}/import", **options)
    assert [item["rule"] for item in report["refused"]] == ["was deleted on purpose"] * 2
    assert await triples(agent) == []
    await connect(agent, "Bob", "knows", "Carol")
    await agent.request("DELETE", f"{URL}/triples/{(await triples(agent))[0]['id']}")
    report = await agent.request("POST", f"{URL}/import", params={"restore": "true"}, **options)
    assert (report["created"], report["refused"]) == (2, [])


@pytest.mark.parametrize("path", ["/v1/users/ada", "/v1/agents/default"])
async def test_erasing_a_user_or_an_agent_erases_their_graph(
    agent: Agent, inspector: StateInspector, gateway: Gateway, path: str
) -> None:
    session = await agent.session(id="talk", user_id="ada")
    await connect(agent, SECRET, "knows", f"{SECRET} too", user_id="ada")
    # It is common, and comes from a session of the user.
    await connect(agent, "Alice", "said", "Bob", fact=SECRET, source={"session_id": session})
    receipt = await agent.request("DELETE", path)
    assert receipt["erased"]["triples"] == 2
    assert receipt["erased"]["entities"] == (2 if path.startswith("/v1/users") else 4)
    assert await records_with(inspector, gateway, SECRET) == []


async def test_what_was_extracted_goes_with_its_last_source_and_what_a_caller_named_stays(
    agent: Agent, gateway: Gateway
) -> None:
    session = await agent.session()
    for number in range(3):
        await agent.append_turn(session, f"said {number}", "user")
    memory = await agent.save("Ada knows it.")
    scope = Scope(gateway.tenant)
    turns = [TripleSource(session_id=session, seq=seq) for seq in (1, 2)]
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for name, sources in (
            ("of turns", turns),
            ("of the first", turns[:1]),
            ("of both", [turns[0], TripleSource(memory_id=memory["id"])]),
            ("adopted", turns[:1]),
        ):
            entity = await save.upsert_entity(tx, scope, EntityDraft(name=name), derived=True)
            await triple_queries.add_sources(tx, {"entity_id": entity.id}, sources)
            draft = TripleDraft(subject="Ada", predicate="said", literal=name)
            ends = await save.resolve_ends(tx, scope, draft, derived=True)
            await save.write_triple(tx, scope, draft, ends, sources, UNKNOWN, derived=True)
        ada = await entity_queries.lock_named(tx, scope, "Ada")
        assert ada is not None
        await entity_queries.adopt(tx, scope, [ada.id])
    await save_entity(agent, "adopted")
    await agent.request("DELETE", f"/v1/sessions/{session}/turns/1")
    assert {entity["name"] for entity in await entities(agent)} == {"Ada", "of turns", "of both", "adopted"}
    assert {triple["object"] for triple in await triples(agent)} == {"of turns", "of both"}
    await agent.request("DELETE", f"/v1/memories/{memory['id']}")
    assert {entity["name"] for entity in await entities(agent)} == {"Ada", "of turns", "adopted"}
    assert {triple["object"] for triple in await triples(agent)} == {"of turns"}
