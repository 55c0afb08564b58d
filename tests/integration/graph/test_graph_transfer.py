"""KG5 and LT14: a graph is exported and imported without loss, again, elsewhere, and with the scope."""

import asyncio
import json
from typing import Any

from tests.agent import Agent, Json
from tests.integration.graph.conftest import URL, connect, entities, save_entity, triples
from tests.integration.graph.transferred_lines import export, import_lines


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


def entity_line(name: str, **fields: Any) -> Json:
    created = {"created_at": "2026-01-01T00:00:00Z"}
    return {"kind": "graph_entity", "id": f"e {name}", "name": name, "type": "Topic", **created, **fields}


def triple_line(number: int, **fields: Any) -> Json:
    what = {"id": f"t{number}", "subject": f"Node {number}", "predicate": "knows", "confidence": 0.5}
    created = {"created_at": "2026-01-01T00:00:00Z"}
    ends: Json = {} if "literal" in fields else {"object": f"Node {number + 1}"}
    return {"kind": "graph_triple", **what, **ends, **created, **fields}


async def test_of_two_imports_of_one_file_at_once_each_line_is_stored_once(agent: Agent) -> None:
    rows = [entity_line(f"Node {number}", aliases=[f"N {number}"]) for number in range(0, 1500, 2)]
    rows += [triple_line(number, sources=[{"session_id": "s", "seq": 1}]) for number in range(1500)]
    reports = await asyncio.gather(*(import_lines(agent, rows) for _ in range(3)))
    assert sum(report["created"] for report in reports) == len(rows)
    for report in reports:
        assert report["created"] + report["skipped"] == len(rows)
        assert (report["refused"], report["malformed"], report["remapped"]) == ([], [], {})
    exported = await export(agent)
    assert len([line for line in exported if line["kind"] == "graph_entity"]) == 1501
    drawn = [line for line in exported if line["kind"] == "graph_triple"]
    assert (len(drawn), {len(line["sources"]) for line in drawn}) == (1500, {1})


async def test_lines_of_one_name_or_of_one_meaning_follow_each_other(agent: Agent) -> None:
    over = {"valid_at": "2020-01-01T00:00:00Z", "invalid_at": "2021-01-01T00:00:00Z"}
    rows = [
        entity_line("Ada", aliases=["A"]),
        entity_line("ADA", id="e2", aliases=["B"], metadata={"k": "v"}),
        entity_line("ada", id="e3", aliases=["a", "b"]),
        triple_line(1, subject="Ada", object="bob"),
        triple_line(2, subject="B", object="BOB", confidence=0.9),
        triple_line(3, subject="ada", object="Bob", **over),
        triple_line(4, subject="ada", object="Bob", **over),
        triple_line(1, subject="Ada", predicate="likes", object="Bob"),
    ]
    report = await import_lines(agent, rows)
    counts = {
        kind: (part["created"], part["updated"], part["skipped"]) for kind, part in report["kinds"].items()
    }
    assert counts == {"memory": (0, 0, 0), "graph_entity": (1, 1, 1), "graph_triple": (3, 0, 2)}
    assert set(report["remapped"]) == {"t1"}
    [ada] = await entities(agent, name="Ada")
    assert (ada["name"], ada["aliases"], ada["metadata"]) == ("Ada", ["A", "B"], {"k": "v"})
    assert {entity["name"] for entity in await entities(agent)} == {"Ada", "bob"}


async def test_a_line_that_names_the_id_of_no_entity_is_refused_alone(agent: Agent) -> None:
    unknown = "00000000-0000-7000-8000-000000000000"
    foreign = await save_entity(agent, "Foreign", user_id="ada")
    alice = await save_entity(agent, "Alice")
    rows = [
        triple_line(1, subject=unknown),
        triple_line(2, object=foreign["id"]),
        triple_line(3, object=unknown),
        triple_line(4, object=alice["id"]),
        triple_line(5, subject="Alice", literal=unknown),
    ]
    report = await import_lines(agent, rows)
    assert report["created"] == 2
    assert [(item["line"], item["rule"].split(":")[0]) for item in report["refused"]] == [
        (1, "subject"),
        (2, "object"),
        (3, "object"),
    ]
    assert {line["object"] for line in await triples(agent)} == {"Alice", unknown}


async def test_an_alias_that_was_deleted_on_purpose_does_not_come_back_under_another_name(
    agent: Agent,
) -> None:
    alice = await save_entity(agent, "Alice", aliases=["Ally"])
    await agent.request("DELETE", f"{URL}/entities/{alice['id']}")
    report = await import_lines(agent, [entity_line("Somebody", aliases=["ALLY"])])
    assert [item["rule"] for item in report["refused"]] == ["was deleted on purpose"]
    await save_entity(agent, "Alice", aliases=["Ally"])
    assert (await import_lines(agent, [entity_line("Alice", aliases=["Ally", "Al"])]))["updated"] == 1


async def test_a_triple_that_was_deleted_comes_back_under_no_name_of_its_entities(agent: Agent) -> None:
    alice = await save_entity(agent, "Alice", aliases=["Ally", "Al Smith"])
    bot = await save_entity(agent, "RockBot", aliases=["The bot"])
    triple = await connect(agent, "Alice", "works_on", "RockBot")
    await agent.request("DELETE", f"{URL}/triples/{triple['id']}")
    names = [("ALLY", "RockBot"), ("ally", "the bot"), (alice["id"], bot["id"]), ("Al Smith", "The bot")]
    rows = [
        triple_line(number, subject=subject, predicate="works_on", object=object_)
        for number, (subject, object_) in enumerate(names)
    ]
    for lines in ([rows[2]], rows):
        report = await import_lines(agent, lines)
        assert [(item["line"], item["rule"]) for item in report["refused"]] == [
            (number, "was deleted on purpose") for number in range(1, len(lines) + 1)
        ]
    assert await triples(agent, validity="any") == []
    assert (await import_lines(agent, rows[1:2], restore="true"))["created"] == 1
    assert (await import_lines(agent, rows))["skipped"] == 4
    [restored] = await triples(agent)
    await agent.request("DELETE", f"{URL}/triples/{restored['id']}")
    await connect(agent, "Ally", "works_on", "The bot")
    assert (await import_lines(agent, rows))["skipped"] == 4


async def test_each_line_is_refused_however_it_writes_a_deleted_name(agent: Agent) -> None:
    alice = await save_entity(agent, "Alice", aliases=["Ally"])
    await agent.request("DELETE", f"{URL}/entities/{alice['id']}")
    rows = [triple_line(n, subject=name) for n, name in enumerate(("Alice", "ALICE", "Ally", "ally"))]
    assert len((await import_lines(agent, rows))["refused"]) == 4
    assert await entities(agent) == []


async def test_what_dreams_must_leave_alone_is_left_alone_after_an_import(agent: Agent) -> None:
    triple = await connect(agent, "Alice", "may_know", "Bob", confidence=0.1)
    for step in ("invalidate", "restore"):
        body: Json = {"json": {"reason": "x"}} if step == "invalidate" else {}
        await agent.request("POST", f"{URL}/triples/{triple['id']}/{step}", **body)
    exported = await export(agent)
    assert [line["is_kept"] for line in exported if line["kind"] == "graph_triple"] == [True]
    await import_lines(agent, exported, agent_id="other")
    assert [line["is_kept"] for line in await export(agent, agent_id="other")] == [False, False, True]
    older = [{name: value for name, value in line.items() if name != "is_kept"} for line in exported]
    assert (await import_lines(agent, older, agent_id="third"))["created"] == 3


async def test_an_id_that_another_scope_has_is_replaced_also_in_a_large_file(agent: Agent) -> None:
    rows = [entity_line(f"Thing {number}") for number in range(1200)]
    assert (await import_lines(agent, rows))["remapped"] == {}
    report = await import_lines(agent, rows, agent_id="other")
    assert (report["created"], len(report["remapped"])) == (1200, 1200)
    assert (await import_lines(agent, rows, agent_id="other"))["skipped"] == 1200
    full = [
        entity_line("Thing 1", aliases=[f"alias {n}" for n in range(64)]),
        entity_line("Thing 1", aliases=["x"]),
    ]
    report = await import_lines(agent, full)
    assert (report["updated"], len(report["refused"])) == (1, 1)
