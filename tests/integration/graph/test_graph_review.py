"""DR11: dreams merge entities that are one and end what is contradicted, only as shown, and can be undone."""

import asyncio
import json

import pytest

from shared.foundation.origin import UNKNOWN
from shared.foundation.scope import Scope
from shared.memory.graph import save, triple_queries
from shared.memory.graph.entity import EntityDraft
from shared.memory.graph.triple import TripleDraft, TripleSource
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.dreams.conftest import create_session, model_gateway, run_dream  # noqa: F401  (a fixture)
from tests.integration.graph.conftest import URL, connect, entities, lines, matched, save_entity, triples
from tests.integration.graph.reviews import consolidate, merge
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer
from tests.standins.wire import Call

MAY, JUNE = "2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z"


@pytest.fixture
def gateway(model_gateway: Gateway) -> Gateway:  # noqa: F811
    return model_gateway


async def _draw(gateway: Gateway, *drafts: TripleDraft, sources: list[TripleSource] | None = None) -> None:
    """Write triples as an extraction does."""
    scope = Scope(gateway.tenant)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for draft in drafts:
            ends = await save.resolve_ends(tx, scope, draft, derived=True)
            await save.write_triple(tx, scope, draft, ends, sources or [], UNKNOWN, derived=True)


async def _of_two_names(agent: Agent) -> None:
    """Save one robot under two names, of which different things are said."""
    await save_entity(agent, "RockBot", type="Project", metadata={"a": "1"})
    await save_entity(agent, "Rock Bot", type="Project", aliases=["The rock"], metadata={"a": "2", "b": "3"})
    await connect(agent, "Alice", "works_on", "RockBot", confidence=0.4)
    await connect(
        agent, "Alice", "works_on", "Rock Bot", confidence=0.9, source={"session_id": "s", "seq": 1}
    )
    await connect(agent, "Rock Bot", "uses", "Lidar", valid_at=MAY, fact="It uses lidar.")
    await connect(agent, "Rock Bot", "is", "RockBot")
    body = {"subject": "Rock Bot", "predicate": "weighs", "literal": "40 kg"}
    await agent.request("POST", f"{URL}/triples", json=body, status=201)


async def test_two_entities_that_are_one_are_merged_with_names_triples_and_sources(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await _of_two_names(agent)
    before = [await triples(agent), await entities(agent)]
    run = await consolidate(gateway, models, merge("e1", "e2"))
    shown = str(models.chat_calls[-1].body)
    assert "[e1] Project: RockBot" in shown
    assert "[e2] Project: Rock Bot (aliases: The rock)" in shown
    assert run["applied"] == {
        "entity_widened": 1,
        "entity_invalidated": 1,
        "triple_widened": 1,
        "triple_created": 2,
        "triple_invalidated": 4,
    }
    [rockbot] = await entities(agent, name="rock bot")
    assert (rockbot["name"], rockbot["aliases"]) == ("RockBot", ["Rock Bot", "The rock"])
    assert rockbot["metadata"] == {"a": "1", "b": "3"}
    said = {(item["subject"], item["predicate"], item["object"]): item for item in await triples(agent)}
    assert set(said) == {
        ("Alice", "works_on", "RockBot"),
        ("RockBot", "uses", "Lidar"),
        ("RockBot", "weighs", "40 kg"),
    }
    works = said["Alice", "works_on", "RockBot"]
    assert (works["confidence"], works["sources"][0]["session_id"]) == (0.9, "s")
    uses = said["RockBot", "uses", "Lidar"]
    assert (uses["valid_at"], uses["invalid_at"], uses["fact"]) == (MAY, None, "It uses lidar.")
    assert await matched(agent, "What of the rock?") == ["RockBot"]
    assert len(await lines(agent, "Rock Bot")) == 3
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert undone["kept"] == []
    after = [await triples(agent), await entities(agent)]
    touched = {"updated_at": None, "last_referenced_at": None}
    assert [[item | touched for item in part] for part in after] == [
        [item | touched for item in part] for part in before
    ]


async def test_what_was_merged_and_undone_is_not_merged_again_and_a_graph_without_changes_costs_no_call(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await _of_two_names(agent)
    run = await consolidate(gateway, models, merge("e1", "e2"))
    calls = len(models.chat_calls)
    assert (await consolidate(gateway, models))["state"] == "skipped"
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    second = await consolidate(gateway, models, merge("e1", "e2"))
    assert second["applied"] == {}
    assert len(models.chat_calls) == calls
    assert len(await entities(agent)) == 4


async def test_what_is_named_as_before_a_merge_goes_to_the_entity_that_was_kept(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await _of_two_names(agent)
    await consolidate(gateway, models, merge("e1", "e2"))
    [rockbot] = await entities(agent, name="RockBot")
    later = await connect(agent, "ROCK BOT", "lives_in", "Oslo")
    assert later["subject_id"] == rockbot["id"]
    session = await create_session(gateway, "The Rock Bot, or Rocky, is fast.")
    entity = {"id": None, "name": "Rock Bot", "type": "Project", "aliases": ["Rocky"]}
    models.chat_default = Reply(
        json.dumps({"entities": [entity | {"sources": [[session, 1]]}], "triples": []})
    )
    await run_dream(gateway, passes=["extract_entities"])
    [rockbot] = await entities(agent, name="Rocky")
    assert rockbot["name"] == "RockBot"
    assert {item["name"] for item in await entities(agent)} == {"RockBot", "Alice", "Lidar", "Oslo"}


async def test_an_undo_keeps_what_a_caller_has_said_since(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await _of_two_names(agent)
    run = await consolidate(gateway, models, merge("e1", "e2"))
    said = await connect(agent, "RockBot", "uses", "Lidar")
    await save_entity(agent, "RockBot", aliases=["Rocky"])
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    [rockbot] = await entities(agent, name="Rocky")
    assert {item["entry_id"] for item in undone["kept"]} == {said["id"], rockbot["id"]}
    assert said["id"] in {item["id"] for item in await triples(agent)}


async def test_forgetting_after_a_merge_takes_what_came_from_there_and_undo_brings_none_back(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    session = await create_session(gateway, "Rock Bot uses persimmonia.")
    scope = Scope(gateway.tenant)
    sources = [TripleSource(session_id=session, seq=1)]
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        dropped = await save.upsert_entity(tx, scope, EntityDraft(name="Rock Bot"), derived=True)
        await triple_queries.add_sources(tx, {"entity_id": dropped.id}, sources)
    await save_entity(agent, "RockBot")
    await _draw(
        gateway, TripleDraft(subject="Rock Bot", predicate="uses", literal="persimmonia"), sources=sources
    )
    run = await consolidate(gateway, models, merge("e2", "e1"))
    assert run["applied"]["triple_invalidated"] == 1
    await agent.request("DELETE", f"/v1/sessions/{session}/turns/1")
    everything = str([await triples(agent, validity="any"), await entities(agent, validity="any")])
    assert "persimmonia" not in everything
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert "persimmonia" not in str(undone)
    assert "persimmonia" not in str(await triples(agent, validity="any"))


async def test_an_entity_that_others_build_on_is_not_merged(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await save_entity(agent, "RockBot", type="Project")
    await save_entity(agent, "Rock Bot", type="Project")
    await connect(agent, "Ada", "likes", "Rock Bot", user_id="ada")
    run = await consolidate(gateway, models, merge("e1", "e2"))
    assert [item["code"] for item in run["rejections"]] == ["crosses_users"]
    assert len(await entities(agent)) == 2


async def test_an_entity_with_many_triples_is_not_merged(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await save_entity(agent, "RockBot", type="Project")
    await save_entity(agent, "Rock Bot", type="Project")
    await _draw(
        gateway, *(TripleDraft(subject="Rock Bot", predicate="has", literal=f"part {n}") for n in range(201))
    )
    run = await consolidate(gateway, models, merge("e1", "e2"))
    assert [item["code"] for item in run["rejections"]] == ["over_quota"]


async def test_a_newer_triple_ends_the_one_that_it_contradicts(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    old = TripleDraft(subject="Ada", predicate="lives_in", object="Aarhus", confidence=0.9)
    await _draw(gateway, old)
    await connect(agent, "Ada", "lives_in", "Odense", confidence=0.9, valid_at=JUNE)
    labels = {item["object"]: item for item in await triples(agent)}
    reply = {"merge": [], "invalidate": [{"id": "t1", "because": "t2", "reason": "contradicted"}]}
    run = await consolidate(gateway, models, Reply(json.dumps(reply)))
    assert run["applied"] == {"triple_invalidated": 1}
    [odense] = await triples(agent)
    assert odense["object"] == "Odense"
    ended = await agent.request("GET", f"{URL}/triples/{labels['Aarhus']['id']}")
    assert (ended["reason"], ended["invalid_at"]) == ("contradicted", JUNE)
    assert [item["object"] for item in await triples(agent, as_of=MAY)] == ["Aarhus"]
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert len(await triples(agent)) == 2
    assert (await consolidate(gateway, models, Reply(json.dumps(reply))))["applied"] == {}


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply('{"merge": [{"keep": "e1", "drop": ', finish_reason="length"), "cut_off"),
        (Reply("I would rather not."), "unusable_reply"),
        (merge("e1", "e9"), "unknown_id"),
        (merge("e1", "e1"), "source_taken"),
    ],
)
async def test_what_a_model_answers_that_is_no_plan_changes_nothing_and_the_rest_is_done(
    agent: Agent, gateway: Gateway, models: ModelServer, reply: Reply, code: str
) -> None:
    await save_entity(agent, "RockBot", type="Project")
    await save_entity(agent, "Rock Bot", type="Project")
    memory = await agent.save("Bo leads Larkspur.", enrich=False)
    await agent.request("PATCH", f"/v1/memories/{memory['id']}", json={"valid_until": MAY})
    await connect(agent, "Bo", "leads", "Larkspur", source={"memory_id": memory["id"]})
    run = await consolidate(gateway, models, reply)
    assert (run["state"], run["applied"]) == ("done", {"triple_invalidated": 1})
    assert [item["code"] for item in run["rejections"]] == [code]
    assert {item["name"] for item in await entities(agent)} >= {"RockBot", "Rock Bot"}
    calls = len(models.chat_calls)
    assert (await consolidate(gateway, models))["state"] == "skipped"
    assert len(models.chat_calls) == calls, "it is not asked once more"


async def test_without_an_answer_the_rest_is_done_and_the_question_waits(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await _of_two_names(agent)
    memory = await agent.save("Bo leads Larkspur.", enrich=False)
    await agent.request("PATCH", f"/v1/memories/{memory['id']}", json={"valid_until": MAY})
    await connect(agent, "Bo", "leads", "Larkspur", source={"memory_id": memory["id"]})
    run = await consolidate(gateway, models, Status(503))
    assert (run["state"], run["applied"]) == ("done", {"triple_invalidated": 1})
    run = await consolidate(gateway, models, merge("e1", "e2"))
    assert run["applied"]["entity_invalidated"] == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "codes"),
    [
        ("DELETE", "/{id}", {}, ["changed_meanwhile"]),
        ("POST", "", {"json": {"name": "Rock Bot", "aliases": ["Rocky"]}, "status": 201}, []),
    ],
)
async def test_an_entity_that_was_deleted_while_the_model_was_asked_is_not_merged_and_what_was_added_is_kept(
    agent: Agent,
    gateway: Gateway,
    models: ModelServer,
    *,
    method: str,
    path: str,
    body: Json,
    codes: list[str],
) -> None:
    await save_entity(agent, "RockBot", type="Project")
    dropped = await save_entity(agent, "Rock Bot", type="Project")

    loop = asyncio.get_running_loop()

    def change_meanwhile(call: Call) -> str:
        assert "Rock Bot" in call.prompt
        changing = agent.request(method, f"{URL}/entities{path.format(**dropped)}", **body)
        asyncio.run_coroutine_threadsafe(changing, loop).result(10)
        return str(merge("e1", "e2").text)

    run = await consolidate(gateway, models, Reply(change_meanwhile))
    assert [item["code"] for item in run["rejections"]] == codes
    [rockbot] = await entities(agent, name="RockBot")
    assert ("Rock Bot" in rockbot["aliases"]) is not bool(codes)
