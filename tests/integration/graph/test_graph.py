"""KG1 and KG2: entities and triples are saved, confirmed, invalidated, restored and listed."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from shared.memory.graph import entity_queries
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.graph.conftest import URL, connect, entities, save_entity, triples

JANUARY, FEBRUARY, MARCH = (f"2026-0{month}-01T00:00:00Z" for month in (1, 2, 3))


async def test_an_entity_is_saved_once_by_its_name_and_its_aliases_are_joined(agent: Agent) -> None:
    first = await save_entity(agent, "RockBot", type="Project", aliases=["Rock Bot"], metadata={"a": "1"})
    joined = await save_entity(agent, "rockbot", aliases=["ROCK BOT", "The bot"], metadata={"b": "2"})
    assert (joined["id"], joined["name"], joined["type"]) == (first["id"], "RockBot", "Project")
    assert (joined["aliases"], joined["metadata"]) == (["Rock Bot", "The bot"], {"a": "1", "b": "2"})
    assert joined["created_at"] == first["created_at"]
    assert await agent.request("GET", f"{URL}/entities/{first['id']}") == joined
    assert await entities(agent, name="the BOT") == [joined]
    assert await entities(agent, type="Person") == []


async def test_an_entity_has_at_most_64_aliases(agent: Agent) -> None:
    await save_entity(agent, "Hydra", aliases=[f"head {n}" for n in range(64)])
    await save_entity(agent, "Hydra", aliases=["head 3"])
    await save_entity(agent, "Hydra", aliases=["one more"], status=HTTPStatus.CONFLICT)
    [hydra] = await entities(agent)
    assert len(hydra["aliases"]) == 64


async def test_an_entity_has_at_most_64_metadata_pairs(agent: Agent) -> None:
    await save_entity(agent, "Hydra", metadata={f"head {n}": "1" for n in range(64)})
    await save_entity(agent, "Hydra", metadata={"head 3": "2"})
    await save_entity(agent, "Hydra", metadata={"one more": "1"}, status=HTTPStatus.CONFLICT)


async def test_triples_of_new_names_in_both_directions_are_all_saved(agent: Agent) -> None:
    for number in range(10):
        ends = (f"left {number}", f"right {number}")
        pairs = [ends, ends[::-1]] * 3
        made = await asyncio.gather(*(connect(agent, start, "knows", end) for start, end in pairs))
        assert len({triple["id"] for triple in made}) == 2


@pytest.mark.parametrize("ends", [("a new name", "b new name"), ("b new name", "a new name")])
async def test_the_new_names_of_a_triple_are_saved_in_one_order_so_that_two_savers_cannot_block_each_other(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, ends: tuple[str, str]
) -> None:
    names: list[str] = []
    insert_new = entity_queries.insert_new

    async def note_name(*arguments: Any) -> Any:
        names.append(arguments[2])
        return await insert_new(*arguments)

    monkeypatch.setattr(entity_queries, "insert_new", note_name)
    triple = await connect(agent, ends[0], "knows", ends[1])
    assert names == sorted(ends)
    assert (triple["subject"], triple["object"]) == ends


async def test_many_who_save_one_entity_and_one_triple_save_one_of_each(agent: Agent) -> None:
    saved = await asyncio.gather(*(save_entity(agent, "Alice", aliases=[f"Al {n}"]) for n in range(8)))
    assert len({entity["id"] for entity in saved}) == 1
    [alice] = await entities(agent)
    assert len(alice["aliases"]) == 8
    made = await asyncio.gather(*(connect(agent, "Alice", "knows", "Bob") for _ in range(8)))
    assert len({triple["id"] for triple in made}) == 1
    assert len(await triples(agent)) == 1


async def test_the_names_of_a_triple_are_resolved_to_ids(agent: Agent) -> None:
    alice = await save_entity(agent, "Alice", type="Person", aliases=["Ally"])
    triple = await connect(agent, "ALLY", "Works On", "RockBot", object_type="Project", confidence=0.9)
    assert (triple["subject"], triple["subject_id"]) == ("Alice", alice["id"])
    assert (triple["predicate"], triple["object"], triple["confidence"]) == ("works_on", "RockBot", 0.9)
    by_id = await connect(
        agent, alice["id"], "works_on", triple["object_id"], confidence=0.4, fact="She does."
    )
    assert (by_id["id"], by_id["confidence"], by_id["fact"]) == (triple["id"], 0.9, "She does.")
    assert {entity["name"]: entity["type"] for entity in await entities(agent)} == {
        "Alice": "Person",
        "RockBot": "Project",
    }


async def test_a_triple_may_have_a_literal_and_sources(agent: Agent) -> None:
    body = {
        "subject": "Alice",
        "predicate": "born_in",
        "literal": "1990",
        "source": {"session_id": "s", "seq": 3},
    }
    first = await agent.request("POST", f"{URL}/triples", json=body, status=HTTPStatus.CREATED)
    assert (first["object"], first["object_id"]) == ("1990", None)
    body["source"] = {"memory_id": "0123456789ab"}
    confirmed = await agent.request("POST", f"{URL}/triples", json=body, status=HTTPStatus.CREATED)
    assert confirmed["id"] == first["id"]
    assert [source["memory_id"] or source["seq"] for source in confirmed["sources"]] == [3, "0123456789ab"]


async def test_an_invalidated_triple_is_no_longer_shown_and_can_be_restored(agent: Agent) -> None:
    triple = await connect(agent, "Alice", "works_on", "RockBot", valid_at=JANUARY)
    path = f"{URL}/triples/{triple['id']}"
    body = {"reason": "she left", "invalid_at": FEBRUARY}
    over = await agent.request("POST", f"{path}/invalidate", json=body)
    assert (over["invalid_at"], over["reason"]) == (FEBRUARY, "she left")
    assert over["expired_at"] is not None
    assert await triples(agent) == []
    assert await triples(agent, validity="any") == [over]
    await agent.request("POST", f"{path}/invalidate", json=body, status=HTTPStatus.CONFLICT)
    assert await agent.request("POST", f"{path}/restore") == triple
    await agent.request("POST", f"{path}/restore", status=HTTPStatus.CONFLICT)


async def test_the_same_may_hold_again_later_and_then_the_older_is_not_restored(agent: Agent) -> None:
    first = await connect(agent, "Alice", "works_on", "RockBot")
    await agent.request("POST", f"{URL}/triples/{first['id']}/invalidate", json={"reason": "she left"})
    second = await connect(agent, "Alice", "works_on", "RockBot")
    assert second["id"] != first["id"]
    answer = await agent.request("POST", f"{URL}/triples/{first['id']}/restore", status=HTTPStatus.CONFLICT)
    assert "says the same" in answer["detail"]
    assert [triple["id"] for triple in await triples(agent)] == [second["id"]]


async def test_a_triple_can_not_be_invalidated_from_the_future_on(agent: Agent) -> None:
    triple = await connect(agent, "Alice", "works_on", "RockBot")
    body = {"reason": "she will leave", "invalid_at": "2998-01-01T00:00:00Z"}
    path = f"{URL}/triples/{triple['id']}/invalidate"
    await agent.request("POST", path, json=body, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    assert await triples(agent) == [triple]


@pytest.mark.parametrize(("as_of", "is_shown"), [(JANUARY, False), (FEBRUARY, True), (MARCH, False)])
async def test_a_list_as_of_a_time_shows_what_held_then(agent: Agent, as_of: str, *, is_shown: bool) -> None:
    await connect(agent, "Alice", "works_on", "RockBot", valid_at=FEBRUARY, invalid_at=MARCH)
    assert len(await triples(agent, as_of=as_of)) == is_shown
    assert await triples(agent) == []


async def test_what_is_saved_twice_with_its_end_is_one_triple(agent: Agent) -> None:
    times: Json = {"valid_at": JANUARY, "invalid_at": FEBRUARY}
    first, second = [await connect(agent, "Alice", "led", "RockBot", **times) for _ in range(2)]
    assert first["id"] == second["id"]


async def test_lists_are_read_by_pages(agent: Agent) -> None:
    for number in range(5):
        await connect(agent, "Alice", "likes", f"Song {number}")
    for path, count in (("entities", 6), ("triples", 5)):
        ids: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = await agent.request("GET", f"{URL}/{path}", params={"limit": 2, **cursor})
            ids += [row["id"] for row in page["results"]]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert (len(ids), len(set(ids))) == (count, count)


async def test_a_user_bound_key_reads_the_common_graph_and_writes_its_own(
    agent: Agent, gateway: Gateway
) -> None:
    common = await save_entity(agent, "RockBot", type="Project")
    async with await gateway.new_client(user_id="ada") as client:
        ada = Agent(client, gateway.tenant)
        triple = await connect(ada, "Ada", "works_on", "RockBot")
        assert (triple["user_id"], triple["object_id"]) == ("ada", common["id"])
        own = await save_entity(ada, "RockBot")
        assert own["id"] != common["id"]
        await ada.request("DELETE", f"{URL}/entities/{common['id']}", status=HTTPStatus.FORBIDDEN)
    assert [entity["id"] for entity in await entities(agent)] == [common["id"]]
    assert await triples(agent) == []
