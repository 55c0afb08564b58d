"""DR11 and KG2: who names an entity that was merged, even while that happens, means the one that was kept."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from httpx import Response

from shared.dreams.graph import merge as graph_merge
from shared.dreams.graph import undo as graph_undo
from shared.dreams.graph.applied_graph import AppliedGraph, GraphPass
from shared.dreams.verification.graph_changes import EntityMerge
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.dreams.conftest import create_session, model_gateway, run_dream  # noqa: F401  (a fixture)
from tests.integration.graph.conftest import URL, connect, entities, matched, save_entity, triples
from tests.integration.graph.reviews import consolidate, merge
from tests.integration.graph.transferred_lines import export, import_lines
from tests.locks import wait_until_blocked
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer


@pytest.fixture
def gateway(model_gateway: Gateway) -> Gateway:  # noqa: F811
    return model_gateway


@asynccontextmanager
async def _merging(gateway: Gateway, *pairs: tuple[Json, Json]) -> AsyncIterator[GraphPass]:
    """Merge the second entity of each pair into the first, in a transaction that ends with the block."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        pass_ = GraphPass(tx, Scope(gateway.tenant), "run", "consolidate_graph", AppliedGraph())
        for kept, dropped in pairs:
            await graph_merge.merge(pass_, EntityMerge(kept["id"], dropped["id"]))
        assert pass_.applied.skipped == []
        yield pass_


async def _save_beside(tx: Transaction, agent: Agent, path: str, body: Json) -> "asyncio.Task[Response]":
    """Send a save that waits for the transaction of a connection, and return it as it waits."""
    saving = asyncio.create_task(agent.client.post(f"{URL}/{path}", json=body))
    await wait_until_blocked(tx, saving)
    return saving


async def _two_robots(agent: Agent) -> tuple[Json, Json]:
    kept = await save_entity(agent, "RockBot", type="Project")
    dropped = await save_entity(agent, "Rock Bot", type="Project", aliases=["The rock"])
    await connect(agent, "Rock Bot", "uses", "Lidar", fact="It uses lidar.")
    return kept, dropped


def _saves(dropped: Json) -> dict[str, tuple[str, Json]]:
    said: Json = {"subject": "Rock Bot", "predicate": "lives_in", "object": "Oslo"}
    return {
        "triple by name": ("triples", said),
        "triple by id": ("triples", said | {"subject": dropped["id"]}),
        "triple to an id": ("triples", {"subject": "Ada", "predicate": "likes", "object": dropped["id"]}),
        "entity": ("entities", {"name": "ROCK BOT", "aliases": ["Rocky"], "metadata": {"a": "b"}}),
    }


WAYS = sorted(_saves({"id": ""}))


async def _is_said_of(agent: Agent, kept: Json, dropped: Json, saved: Json) -> None:
    """Check that a save went to the kept entity, and that the dropped one is as dead as before."""
    assert kept["id"] in {saved.get("subject_id"), saved.get("object_id"), saved["id"]}
    [found] = await entities(agent, name="Rock Bot")
    assert (found["id"], found["name"]) == (kept["id"], "RockBot")
    assert await matched(agent, "What of the Rock Bot?") == ["RockBot"]
    over = await agent.request("GET", f"{URL}/entities/{dropped['id']}")
    assert (over["expired_at"] is None, over["reason"]) == (False, "merged")


@pytest.mark.parametrize("way", WAYS)
async def test_a_save_that_waited_for_a_merge_is_said_of_the_kept_entity(
    agent: Agent, gateway: Gateway, way: str
) -> None:
    kept, dropped = await _two_robots(agent)
    path, body = _saves(dropped)[way]
    async with _merging(gateway, (kept, dropped)) as pass_:
        saving = await _save_beside(pass_.tx, agent, path, body)
    answer = await saving
    assert answer.status_code == HTTPStatus.CREATED, answer.text
    await _is_said_of(agent, kept, dropped, answer.json())


@pytest.mark.parametrize("way", WAYS)
async def test_a_save_after_a_merge_is_said_of_the_kept_entity_and_the_merge_can_be_undone(
    agent: Agent, gateway: Gateway, way: str
) -> None:
    kept, dropped = await _two_robots(agent)
    path, body = _saves(dropped)[way]
    async with _merging(gateway, (kept, dropped)) as pass_:
        pass
    saved = await agent.request("POST", f"{URL}/{path}", json=body, status=HTTPStatus.CREATED)
    await _is_said_of(agent, kept, dropped, saved)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        undone = await graph_undo.undo(tx, pass_.applied.diff)
    assert undone.kept == ({kept["id"]: "it was changed since"} if way == "entity" else {})
    names = {entity["name"]: entity for entity in await entities(agent, type="Project")}
    assert (names["Rock Bot"]["id"], names["Rock Bot"]["aliases"]) == (dropped["id"], ["The rock"])
    [uses] = await triples(agent, predicate="uses")
    assert uses["subject_id"] == dropped["id"]
    if way == "entity":
        assert (names["RockBot"]["aliases"], names["RockBot"]["metadata"]) == (
            ["Rock Bot", "The rock", "Rocky"],
            {"a": "b"},
        )
    else:
        assert names["RockBot"]["aliases"] == []
        assert saved["id"] in {triple["id"] for triple in await triples(agent)}


@pytest.mark.parametrize("way", WAYS)
async def test_of_an_entity_that_is_merged_twice_the_last_one_is_meant(
    agent: Agent, gateway: Gateway, way: str
) -> None:
    """The save waits for the first kept entity, which is merged itself meanwhile."""
    last = await save_entity(agent, "Rock-Bot One", type="Project")
    kept, dropped = await _two_robots(agent)
    path, body = _saves(dropped)[way]
    async with _merging(gateway, (kept, dropped)):
        pass
    async with _merging(gateway, (last, kept)) as pass_:
        saving = await _save_beside(pass_.tx, agent, path, body)
    saved = (await saving).json()
    assert last["id"] in {saved.get("subject_id"), saved.get("object_id"), saved["id"]}
    assert {entity["name"] for entity in await entities(agent, type="Project")} == {"Rock-Bot One"}


async def test_a_user_who_names_a_merged_common_entity_means_the_common_one_that_was_kept(
    agent: Agent, gateway: Gateway
) -> None:
    kept, dropped = await _two_robots(agent)
    async with _merging(gateway, (kept, dropped)):
        pass
    own = await connect(agent, "Ada", "likes", dropped["id"], user_id="ada")
    assert own["object_id"] == kept["id"]
    hers = await save_entity(agent, "Rock Bot", user_id="ada")
    assert hers["id"] not in {kept["id"], dropped["id"]}, "an entity of hers is her own"
    body = {"subject": dropped["id"], "predicate": "is", "object": "X", "agent_id": "other"}
    await agent.request("POST", f"{URL}/triples", json=body, status=HTTPStatus.UNPROCESSABLE_ENTITY)


async def test_a_merged_entity_whose_kept_one_is_gone_is_there_again_when_somebody_names_it(
    agent: Agent, gateway: Gateway
) -> None:
    kept, dropped = await _two_robots(agent)
    async with _merging(gateway, (kept, dropped)) as pass_:
        await pass_.tx.connection.exec_driver_sql("DELETE FROM graph_entity WHERE name = 'RockBot'")
    said = await connect(agent, dropped["id"], "lives_in", "Oslo")
    assert said["subject_id"] == dropped["id"]
    assert [entity["id"] for entity in await entities(agent, name="Rock Bot")] == [dropped["id"]]


async def test_what_was_drawn_of_a_merged_entity_is_taken_from_the_kept_one_by_an_undo(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    kept, dropped = await _two_robots(agent)
    async with _merging(gateway, (kept, dropped)):
        pass
    session = await create_session(gateway, "The Rock Bot, or Rocky, is fast.")
    drawn: Json = {"id": None, "name": "Rock Bot", "type": "Project", "aliases": ["Rocky"]}
    drawn |= {"sources": [[session, 1]]}
    models.chat_default = Reply(json.dumps({"entities": [drawn], "triples": []}))
    run = await run_dream(gateway, passes=["extract_entities"])
    [rockbot] = await entities(agent, name="Rocky")
    assert (rockbot["id"], rockbot["aliases"]) == (kept["id"], ["Rock Bot", "The rock", "Rocky"])
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    [rockbot] = await entities(agent, name="Rock Bot")
    assert (rockbot["id"], rockbot["aliases"]) == (kept["id"], ["Rock Bot", "The rock"])


async def test_who_deletes_a_kept_entity_deletes_what_was_merged_into_it_and_no_undo_brings_it_back(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    kept, dropped = await _two_robots(agent)
    await save_entity(agent, "Rock Bottom", aliases=["The rock"])
    run = await consolidate(gateway, models, merge("e1", "e2"))
    assert run["applied"]["entity_invalidated"] == 1
    await agent.request("DELETE", f"{URL}/entities/{kept['id']}")
    await agent.request("GET", f"{URL}/entities/{dropped['id']}", status=HTTPStatus.NOT_FOUND)
    assert await triples(agent, validity="any") == []
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    assert (undone["restored"], undone["removed"]) == ([], [])
    assert {entity["name"] for entity in await entities(agent)} == {"Lidar", "Rock Bottom"}


async def test_who_deletes_a_triple_that_was_moved_deletes_what_it_was_before(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    await _two_robots(agent)
    await connect(agent, "Rock Bot", "knows", "Ada")
    weighs = {"subject": "Rock Bot", "predicate": "weighs", "literal": "40 kg"}
    await agent.request("POST", f"{URL}/triples", json=weighs, status=HTTPStatus.CREATED)
    run = await consolidate(gateway, models, merge("e1", "e2"))
    for triple in await triples(agent):
        if triple["predicate"] != "knows":
            await agent.request("DELETE", f"{URL}/triples/{triple['id']}")
    left = await triples(agent, validity="any")
    assert {triple["predicate"] for triple in left} == {"knows"}
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    [knows] = await triples(agent)
    assert (knows["subject"], knows["predicate"]) == ("Rock Bot", "knows")
    line: Json = {"kind": "graph_triple", "id": "t", "confidence": 1, "created_at": knows["created_at"]}
    line |= {"subject": "Rock Bot", "predicate": "uses", "object": "Lidar"}
    assert [item["rule"] for item in (await import_lines(agent, [line]))["refused"]] == [
        "was deleted on purpose"
    ]


async def test_who_deletes_another_entity_of_the_same_alias_deletes_nothing_that_was_merged(
    agent: Agent, gateway: Gateway
) -> None:
    kept, dropped = await _two_robots(agent)
    namesake = await save_entity(agent, "Rock Robot", aliases=["Rock Bot"])
    async with _merging(gateway, (kept, dropped)):
        pass
    await agent.request("DELETE", f"{URL}/entities/{namesake['id']}")
    assert (await agent.request("GET", f"{URL}/entities/{dropped['id']}"))["reason"] == "merged"
    assert len(await triples(agent, validity="any")) == 2


async def test_what_was_deleted_before_a_merge_is_not_imported_under_the_name_that_was_kept(
    agent: Agent, gateway: Gateway
) -> None:
    kept, dropped = await _two_robots(agent)
    other = await connect(agent, "Lidar", "is_part_of", "Rock Bot")
    deleted = [*(await triples(agent, predicate="uses")), other]
    exported = [line for line in await export(agent) if line["kind"] == "graph_triple"]
    for triple in deleted:
        await agent.request("DELETE", f"{URL}/triples/{triple['id']}")
    async with _merging(gateway, (kept, dropped)):
        pass
    of_kept = {"Rock Bot": "RockBot"}
    lines = [
        line | {end: of_kept.get(line[end], line[end]) for end in ("subject", "object")} for line in exported
    ]
    report = await import_lines(agent, [*exported, *lines])
    assert [item["rule"] for item in report["refused"]] == ["was deleted on purpose"] * 4


async def test_an_import_by_the_id_of_a_merged_entity_is_said_of_the_kept_one(
    agent: Agent, gateway: Gateway
) -> None:
    kept, dropped = await _two_robots(agent)
    async with _merging(gateway, (kept, dropped)):
        pass
    line: Json = {"kind": "graph_triple", "id": "t", "confidence": 1, "created_at": kept["created_at"]}
    line |= {"subject": dropped["id"], "predicate": "lives_in", "object": "Oslo"}
    assert (await import_lines(agent, [line]))["created"] == 1
    [lives] = await triples(agent, predicate="lives_in")
    assert lives["subject_id"] == kept["id"]


async def test_an_export_from_before_a_merge_splits_nothing_and_one_from_after_it_has_all(
    agent: Agent, gateway: Gateway
) -> None:
    kept, dropped = await _two_robots(agent)
    await save_entity(agent, "RockBot", metadata={"a": "1"})
    await save_entity(agent, "Rock Bot", metadata={"a": "2"})
    before = await export(agent)
    async with _merging(gateway, (kept, dropped)):
        pass
    after = await export(agent)
    for lines in (after, before):
        report = await import_lines(agent, lines)
        assert (report["skipped"], report["created"], report["updated"]) == (len(lines), 0, 0)
        assert await export(agent) == after
    more = [line | {"aliases": ["Rocky"], "type": "Topic"} for line in before if line["id"] == dropped["id"]]
    assert (await import_lines(agent, more))["updated"] == 1
    [rockbot] = await entities(agent, name="Rocky")
    assert (rockbot["name"], rockbot["type"], rockbot["metadata"]) == ("RockBot", "Project", {"a": "1"})
    over = [line | {"aliases": ["Old name"]} for line in after if line["id"] == dropped["id"]]
    assert (await import_lines(agent, over))["updated"] == 1
    assert await entities(agent, name="Old name") == [], "it is one of the dropped entity alone"
    await import_lines(agent, after, agent_id="other")
    there = await export(agent, agent_id="other")
    unordered = [sorted(str(line | {"id": ""}) for line in lines) for lines in (there, after)]
    assert unordered[0] == unordered[1]
