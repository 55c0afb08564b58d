"""KG4: what is connected with entities, over two hops, in order, with cycles, at a time."""

import json
from http import HTTPStatus

from tests.agent import Agent
from tests.integration.graph.conftest import URL, connect, lines, save_entity
from tests.long_form import in_long_form

JANUARY, FEBRUARY, MARCH = (f"2026-0{month}-01T00:00:00Z" for month in (1, 2, 3))


async def test_triples_are_in_both_directions_by_hop_then_confidence(agent: Agent) -> None:
    await connect(agent, "Alice", "works_on", "RockBot", confidence=0.9)
    await connect(agent, "Carol", "manages", "Alice", confidence=0.95)
    await connect(agent, "RockBot", "uses", "Lidar", confidence=0.99)
    await connect(agent, "Lidar", "made_by", "Acme", confidence=1)
    first = [
        "- Carol --manages--> Alice (confidence=0.95)",
        "- Alice --works_on--> RockBot (confidence=0.90)",
    ]
    assert await lines(agent, "alice", hops=1) == first
    assert await lines(agent, "Alice") == [*first, "- RockBot --uses--> Lidar (confidence=0.99)"]
    assert await lines(agent, "Alice", limit=1) == first[:1]


async def test_a_cycle_ends_and_each_triple_is_there_once(agent: Agent) -> None:
    names = ["Ann", "Ben", "Cat"]
    for subject, object_ in zip(names, [*names[1:], names[0]], strict=True):
        await connect(agent, subject, "knows", object_)
        await connect(agent, subject, "likes", subject)
    found = await lines(agent, "Ann", "Ben", limit=100)
    assert len(found) == len(set(found)) == 6


async def test_of_a_hub_with_many_triples_the_most_certain_are_shown(agent: Agent) -> None:
    count = in_long_form(1000, otherwise=250)
    triple = {"kind": "graph_triple", "subject": "Hub", "predicate": "has", "created_at": JANUARY}
    rows = [
        triple | {"id": f"t{number}", "object": f"Node {number}", "confidence": number / 1000}
        for number in range(count)
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    headers = {"content-type": "application/x-ndjson"}
    report = await agent.request("POST", f"{URL}/import", content=content, headers=headers)
    assert report["kinds"]["graph_triple"]["created"] == count
    expected = [
        f"- Hub --has--> Node {number} (confidence={number / 1000:.2f})"
        for number in range(count - 1, count - 16, -1)
    ]
    assert await lines(agent, "Hub") == expected
    assert (await lines(agent, "Node 3"))[:2] == ["- Hub --has--> Node 3 (confidence=0.00)", expected[0]]


async def test_a_traversal_as_of_a_time_shows_what_held_then(agent: Agent) -> None:
    await connect(agent, "Alice", "works_on", "Old", valid_at=JANUARY, invalid_at=FEBRUARY)
    new = await connect(agent, "Alice", "works_on", "New", valid_at=FEBRUARY)
    assert await lines(agent, "Alice", as_of=JANUARY) == ["- Alice --works_on--> Old (confidence=0.50)"]
    assert await lines(agent, "Alice") == ["- Alice --works_on--> New (confidence=0.50)"]
    body = {"reason": "she left", "invalid_at": MARCH}
    await agent.request("POST", f"{URL}/triples/{new['id']}/invalidate", json=body)
    assert await lines(agent, "Alice") == []
    assert await lines(agent, "Alice", as_of=FEBRUARY) == ["- Alice --works_on--> New (confidence=0.50)"]


async def test_what_the_user_and_the_agent_both_say_is_shown_once_as_the_users(agent: Agent) -> None:
    await connect(agent, "Ada", "likes", "Tea", confidence=0.9)
    await save_entity(agent, "Ada", user_id="ada")
    own = await connect(agent, "Ada", "likes", "Tea", confidence=0.3, user_id="ada")
    body = {"entity": "Ada", "user_id": "ada"}
    found = (await agent.request("POST", f"{URL}/traverse", json=body))["results"]
    assert [step["id"] for step in found] == [own["id"]]
    await agent.request("POST", f"{URL}/traverse", json={"entity": "nobody"}, status=HTTPStatus.NOT_FOUND)
