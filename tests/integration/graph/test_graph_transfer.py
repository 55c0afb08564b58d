"""KG5 and LT14: a graph is exported and imported without loss, again, elsewhere, and with the scope."""

import json
from typing import Any

from tests.integration.graph.conftest import URL, connect, entities, save_entity, triples
from tests.journey.agent import Agent, Json

TYPE = {"content-type": "application/x-ndjson"}


async def export(agent: Agent, path: str = f"{URL}/export", **query: str) -> list[dict[str, Any]]:
    response = await agent.client.get(path, params=query)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


async def import_lines(
    agent: Agent, lines: list[dict[str, Any]], path: str = f"{URL}/import", **query: str
) -> Any:
    content = "\n".join(map(json.dumps, lines)).encode()
    return await agent.request("POST", path, content=content, params=query, headers=TYPE)


async def test_a_graph_is_imported_elsewhere_and_again_without_loss(agent: Agent) -> None:
    await save_entity(agent, "Alice", aliases=["Ally"], type="Person", metadata={"a": "b"})
    times: Json = {"valid_at": "2026-01-01T00:00:00Z", "fact": "Alice knows Bob.", "confidence": 0.8}
    over = await connect(agent, "Alice", "knows", "Bob", **times)
    await agent.request("POST", f"{URL}/triples/{over['id']}/invalidate", json={"reason": "they fell out"})
    await connect(agent, "Alice", "knows", "Bob", source={"session_id": "s", "seq": 1})
    exported = await export(agent)
    assert [line["kind"] for line in exported] == ["graph_entity"] * 2 + ["graph_triple"] * 2
    assert (await import_lines(agent, exported))["skipped"] == 4
    report = await import_lines(agent, exported, agent_id="other")
    assert (report["created"], report["malformed"], report["refused"]) == (4, [], [])
    assert set(report["remapped"]) == {line["id"] for line in exported}
    there = await export(agent, agent_id="other")
    for name in ("id",):
        assert not {line[name] for line in there} & {line[name] for line in exported}
    assert sorted(json.dumps(line | {"id": ""}) for line in there) == sorted(
        json.dumps(line | {"id": ""}) for line in exported
    )
    assert (await import_lines(agent, exported, agent_id="other"))["skipped"] == 4
    assert len(await triples(agent, agent_id="other")) == 1


async def test_the_export_of_the_scope_has_the_graph_and_that_of_the_graph_nothing_else(agent: Agent) -> None:
    memory = await agent.save("Ada prefers trains.")
    await connect(agent, "Ada", "prefers", "trains", source={"memory_id": memory["id"]})
    everything = await export(agent, "/v1/export")
    assert {line["kind"] for line in everything} >= {"memory", "graph_entity", "graph_triple"}
    report = await import_lines(agent, everything, "/v1/import", agent_id="other")
    [triple] = await triples(agent, agent_id="other")
    assert triple["sources"][0]["memory_id"] == report["remapped"][memory["id"]]
    report = await import_lines(agent, everything, agent_id="third")
    assert len(report["malformed"]) == len(everything) - 3
    assert len(await entities(agent, agent_id="third")) == 2


async def test_a_line_that_breaks_a_rule_is_malformed_and_the_others_are_imported(agent: Agent) -> None:
    good: Json = {
        "kind": "graph_entity",
        "id": "e",
        "name": "Ada",
        "type": "Person",
        "created_at": "2026-01-01T00:00:00Z",
    }
    triple: Json = {"kind": "graph_triple", "id": "t", "subject": "Ada", "predicate": "is", "literal": "here"}
    triple |= {"confidence": 0.5, "created_at": "2026-01-01T00:00:00Z"}
    bad: list[Json] = [
        good | {"name": "a\nb"},
        good | {"aliases": [f"alias {n}" for n in range(10_000)]},
        good | {"type": "Alien"},
        triple | {"confidence": 2},
        triple | {"object": "both"},
        triple | {"subject_id": "e"},
        triple | {"sources": [{}]},
    ]
    report = await import_lines(agent, [*bad, good, triple])
    assert (report["created"], len(report["malformed"])) == (2, len(bad))
