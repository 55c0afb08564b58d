"""KG3: the entities that a message is about, by whole words, on every replica, at every time."""

import json

import pytest

from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.integration.graph.conftest import URL, connect, entities, matched, save_entity


@pytest.mark.parametrize(
    ("name", "text", "is_matched"),
    [
        ("Alice", "How is ALICE doing?", True),
        ("Alice", "How is Alice's bot doing?", True),
        ("Alice", "The malice of it", False),
        ("Alice", "Alices everywhere", False),
        ("Rock Bot", "Has the rock  bot moved?", True),
        ("Rock Bot", "Has the rock-bot moved?", True),
        ("Rock Bot", "A rock and a bot", False),
        ("Al", "Al is here", False),
        ("API", "the api is down", True),
        ("José Núñez", "ask jose nunez", True),
        ("東京", "明日は東京に行きます", True),
        ("東京", "京東に行きます", False),
        ("東", "東に行きます", False),
        ("서울", "내일 서울에 가요", True),
        ("กรุงเทพ", "พรุ่งนี้ไปกรุงเทพกันไหม", True),
        (
            "The Society for the Protection of Old Stone Bridges",
            "of the society for the protection of old stone bridges",
            True,
        ),
        (
            "The Society for the Protection of Old Stone Bridges",
            "the society for the protection of old bridges",
            False,
        ),
    ],
)
async def test_a_name_occurs_as_whole_words(agent: Agent, name: str, text: str, *, is_matched: bool) -> None:
    await save_entity(agent, name)
    assert await matched(agent, text) == ([name] if is_matched else [])


async def test_aliases_match_and_several_entities_of_one_name_do(agent: Agent) -> None:
    await save_entity(agent, "Alexander Smith", aliases=["Alex"])
    await save_entity(agent, "Alexandra Jones", aliases=["Alex"])
    assert await matched(agent, "Ask Alex.") == ["Alexander Smith", "Alexandra Jones"]


async def test_an_entity_that_is_matched_is_touched(agent: Agent) -> None:
    await save_entity(agent, "Alice")
    await save_entity(agent, "Bob Miller")
    await matched(agent, "What of Alice?")
    touched = {entity["name"]: entity["last_referenced_at"] is not None for entity in await entities(agent)}
    assert touched == {"Alice": True, "Bob Miller": False}


async def test_a_key_touches_only_what_it_may_write(agent: Agent, gateway: Gateway) -> None:
    await save_entity(agent, "Alice")
    await save_entity(agent, "Ada's Thing", user_id="ada")
    for bound in ({"rights": ["read"]}, {"user_id": "ada"}):
        async with await gateway.new_client(**bound) as client:
            found = await matched(Agent(client, gateway.tenant), "Alice, Ada's thing", user_id="ada")
            assert found == ["Ada's Thing", "Alice"]
    touched = {e["name"]: e["last_referenced_at"] is not None for e in await entities(agent, user_id="ada")}
    assert touched == {"Alice": False, "Ada's Thing": True}


async def test_an_entity_written_by_one_replica_is_matched_by_the_next_request_on_another(
    agent: Agent, gateway: Gateway
) -> None:
    async with running_gateway(gateway.resources.settings, gateway.tenant) as other:
        replica = Agent(other.client, gateway.tenant)
        for number in range(5):
            assert await matched(replica, f"What of Robot {number}?") == []
            entity = await save_entity(agent, f"Robot {number}")
            assert await matched(replica, f"What of Robot {number}?") == [f"Robot {number}"]
            await agent.request("DELETE", f"{URL}/entities/{entity['id']}")
            assert await matched(replica, f"What of Robot {number}?") == []


async def test_in_a_long_message_names_are_found_at_its_beginning_and_its_end(agent: Agent) -> None:
    for name in ("First Name", "Middle Name", "Last Name"):
        await save_entity(agent, name)
    text = f"First Name {'x ' * 20_000} Middle Name {'x ' * 20_000} Last Name"
    assert await matched(agent, text) == ["First Name", "Last Name"]


async def test_a_session_sees_the_common_entities_and_those_of_its_user(agent: Agent) -> None:
    await save_entity(agent, "Common Thing")
    await save_entity(agent, "Ada's Thing", user_id="ada")
    await save_entity(agent, "Bob's Thing", user_id="bob")
    await save_entity(agent, "Another Agent", agent_id="other")
    text = "common thing, Ada's thing, Bob's thing, another agent"
    assert await matched(agent, text, user_id="ada") == ["Ada's Thing", "Common Thing"]
    assert await matched(agent, text) == ["Common Thing"]


async def test_names_of_a_deleted_alias_or_of_signs_alone_match_nothing(agent: Agent) -> None:
    await save_entity(agent, "!!!")
    await connect(agent, "C++", "is", "C#")
    assert await matched(agent, "!!! C++ and C# and vitamin C") == []


async def test_no_name_is_missed_because_thousands_of_others_begin_as_it_does(agent: Agent) -> None:
    beginning = "The Old Society of the Friends of Bridges"
    rows = [
        {"kind": "graph_entity", "id": f"e{n:05}", "name": f"{beginning} Number {n}", "type": "Topic"}
        | {"created_at": "2026-01-01T00:00:00Z"}
        for n in range(2500)
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    await agent.request(
        "POST", f"{URL}/import", content=content, headers={"content-type": "application/x-ndjson"}
    )
    assert await matched(agent, f"I met {beginning} number 2499!") == [f"{beginning} Number 2499"]
    assert await matched(agent, f"I met {beginning} number 24990!") == []
    assert len(await matched(agent, " and ".join(f"{beginning} number {n}" for n in range(30)))) == 20


async def test_of_ten_thousand_aliases_each_is_matched(agent: Agent) -> None:
    rows = [
        {"kind": "graph_entity", "id": f"e{n}", "name": f"Entity {n}", "type": "Topic"}
        | {
            "created_at": "2026-01-01T00:00:00Z",
            "aliases": [f"Alias {n} {m}" for m in range(63)] + ["Shared"],
        }
        for n in range(160)
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    report = await agent.request(
        "POST", f"{URL}/import", content=content, headers={"content-type": "application/x-ndjson"}
    )
    assert report["created"] == 160
    assert await matched(agent, "What of alias 159 62?") == ["Entity 159"]
    assert len(await matched(agent, "What of the shared one?")) == 20
    await matched(agent, "What of alias 77 7?")
    answer = await agent.request("POST", f"{URL}/match", json={"text": "the shared ones"})
    assert answer["results"][0]["name"] in {"Entity 77", "Entity 159"}, "what was referenced last comes first"
    assert "Entity 77" in [entity["name"] for entity in answer["results"]]
