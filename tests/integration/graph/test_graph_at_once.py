"""KG1, KG2 and DR11 under attack: two at once on one record, and what is forgotten while a model thinks."""

import asyncio
import json
from collections import Counter
from http import HTTPStatus

import pytest

from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.dreams.conftest import create_session, model_gateway, run_dream  # noqa: F401  (a fixture)
from tests.integration.graph.conftest import URL, connect, entities, save_entity, triples
from tests.integration.graph.reviews import consolidate, merge
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call

TRIES = 20
REASON = {"reason": "she left"}


@pytest.fixture
def gateway(model_gateway: Gateway) -> Gateway:  # noqa: F811
    return model_gateway


async def _post(agent: Agent, path: str, body: Json | None = None, delay: float = 0) -> int:
    await asyncio.sleep(delay)
    return (await agent.client.post(f"{URL}/{path}", json=body)).status_code


async def test_of_clients_that_invalidate_or_restore_one_triple_one_does_it(agent: Agent) -> None:
    triple = await connect(agent, "Alice", "works_on", "RockBot")
    for _ in range(5):
        for action, body in (("invalidate", REASON), ("restore", None)):
            path = f"triples/{triple['id']}/{action}"
            codes = await asyncio.gather(*(_post(agent, path, body) for _ in range(4)))
            assert Counter(codes) == {HTTPStatus.OK: 1, HTTPStatus.CONFLICT: 3}
    assert [item["id"] for item in await triples(agent)] == [triple["id"]]


async def test_saving_deleting_and_invalidating_one_triple_at_once_leaves_at_most_one_open(
    agent: Agent,
) -> None:
    for number in range(TRIES):
        triple = await connect(agent, "Alice", "works_on", "RockBot")
        body = {"subject": "Alice", "predicate": "works_on", "object": "RockBot"}
        delay = number * 0.002
        codes = await asyncio.gather(
            _post(agent, "triples", body, delay),
            _post(agent, f"triples/{triple['id']}/invalidate", REASON),
            _post(agent, f"triples/{triple['id']}/restore"),
            agent.client.delete(f"{URL}/triples/{triple['id']}"),
            agent.client.delete(f"{URL}/entities/{triple['object_id']}"),
            _post(agent, "triples", body),
        )
        assert HTTPStatus.INTERNAL_SERVER_ERROR not in {
            code if isinstance(code, int) else code.status_code for code in codes
        }
        assert len(await triples(agent)) <= 1
        assert len({entity["name"] for entity in await entities(agent)}) == len(await entities(agent))


async def test_saves_beside_a_merge_are_never_lost(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    """Who writes about the dropped entity meanwhile writes about it, or about the kept one."""
    for number in range(8):
        await save_entity(agent, f"RockBot{number}a", type="Project")
        await save_entity(agent, f"RockBot {number}a", type="Project")
        await connect(agent, f"RockBot {number}a", "uses", "Lidar")
        # One word each: names with a word in common look alike, and the model would merge those.
        said = [f"Part{number}x{part}" for part in range(6)]

        async def save(part: int, said: list[str] = said, number: int = number) -> Json:
            await asyncio.sleep(0.02 * part)
            return await connect(agent, f"RockBot {number}a", "has", said[part])

        _, *saved = await asyncio.gather(
            consolidate(gateway, models, merge("e1", "e2")), *(save(part) for part in range(6))
        )
        live = {triple["object"]: triple for triple in await triples(agent, predicate="has", limit=100)}
        assert set(said) <= set(live), "an acknowledged triple is there"
        names = {entity["id"] for entity in await entities(agent, limit=100)}
        shown = [live[text] for text in said if live[text]["subject_id"] in names]
        assert len(shown) == len(said), "and its entity is there, too"
        assert len(saved) == 6


async def test_an_undo_beside_changes_by_callers_keeps_theirs(
    agent: Agent, gateway: Gateway, models: ModelServer
) -> None:
    for number in range(6):
        await save_entity(agent, f"Bot{number}x", type="Project")
        await save_entity(agent, f"Bot {number}x", type="Project")
        triple = await connect(agent, f"Bot {number}x", "uses", "Lidar")
        run = await consolidate(gateway, models, merge("e1", "e2"))
        body = {"subject": f"Bot{number}x", "predicate": "uses", "object": "Lidar"}
        undone, code, restored = await asyncio.gather(
            agent.client.post(f"/v1/dreams/{run['id']}/undo"),
            _post(agent, "triples", body, number * 0.004),
            _post(agent, f"triples/{triple['id']}/restore", None, number * 0.002),
        )
        assert (undone.status_code, code) == (HTTPStatus.OK, HTTPStatus.CREATED)
        assert restored in {HTTPStatus.OK, HTTPStatus.CONFLICT}
        [kept] = await entities(agent, name=f"Bot{number}x")
        open_triples = await triples(agent, entity_id=kept["id"])
        assert [item["object"] for item in open_triples] == ["Lidar"], "what the caller has saved is there"
        assert len(await triples(agent, entity_id=triple["subject_id"])) == 1


@pytest.mark.parametrize("what", ["turn", "session", "entity", "memory"])
async def test_what_is_forgotten_while_the_model_reads_it_is_not_drawn(
    agent: Agent, gateway: Gateway, models: ModelServer, what: str
) -> None:
    loop = asyncio.get_running_loop()
    source: Json = {"session_id": "talk", "seq": 1}
    session = await create_session(gateway, "Bo Chen leads Persimmonia.")
    memory = await agent.save("Bo Chen leads Persimmonia.", source=source, enrich=False)
    named = await save_entity(agent, "Persimmonia")
    paths = {
        "turn": f"/v1/sessions/{session}/turns/1",
        "session": f"/v1/sessions/{session}",
        "entity": f"{URL}/entities/{named['id']}",
        "memory": f"/v1/memories/{memory['id']}",
    }
    forgotten: list[int] = []

    def forget_meanwhile(call: Call) -> str:
        is_about_fact = memory["id"] in call.prompt
        if is_about_fact == (what == "memory") and not forgotten:
            deleting = agent.client.delete(paths[what])
            forgotten.append(asyncio.run_coroutine_threadsafe(deleting, loop).result(10).status_code)
        cited = [[memory["id"]]] if is_about_fact else [[session, 1]]
        triple = {"subject": "Bo Chen", "predicate": "leads", "object": "Persimmonia", "sources": cited}
        return json.dumps({"entities": [], "triples": [triple]})

    models.chat_default = Reply(forget_meanwhile)
    run = await run_dream(gateway, passes=["extract_entities"])
    assert forgotten == [HTTPStatus.OK]
    drawn = await triples(agent, validity="any")
    assert drawn == [], run["passes"][0]["rejections"]
    assert {entity["name"] for entity in await entities(agent, validity="any")} <= {"Persimmonia"}


async def test_closing_a_memory_beside_changes_of_its_triple_ends_in_one_state(agent: Agent) -> None:
    for number in range(TRIES):
        memory = await agent.save(f"Ada lives in Aarhus {number}.", enrich=False)
        triple = await connect(
            agent, "Ada", "lives_in", f"Aarhus {number}", source={"memory_id": memory["id"]}
        )
        path = f"/v1/memories/{memory['id']}"
        closed, _, _ = await asyncio.gather(
            agent.client.patch(path, json={"valid_until": "2026-01-01T00:00:00Z"}),
            _post(agent, f"triples/{triple['id']}/invalidate", REASON, number * 0.001),
            agent.client.delete(path) if number % 4 == 0 else asyncio.sleep(0),
        )
        assert closed.status_code in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}
        assert triple["id"] not in {item["id"] for item in await triples(agent, limit=100)} or number % 4 == 0
        if number % 4:
            [ended] = [t for t in await triples(agent, validity="any", limit=100) if t["id"] == triple["id"]]
            assert ended["reason"] in {"memory_closed", "she left"}


async def test_a_key_of_another_user_agent_or_namespace_reaches_no_part_of_a_graph(
    agent: Agent, gateway: Gateway
) -> None:
    own = await connect(agent, "Ada", "likes", "Persimmonia", user_id="ada")
    memory = await agent.save("Ada likes it.", user_id="ada", enrich=False)
    for bound in ({"user_id": "bob"}, {"agent_id": "other"}, {"namespace": "session/x"}):
        async with await gateway.new_client(**bound) as client:
            stranger = Agent(client, gateway.tenant)
            unknown = "00000000-0000-7000-8000-000000000000"
            for method, path, body in (
                ("GET", "triples/{}", None),
                ("DELETE", "triples/{}", None),
                ("POST", "triples/{}/invalidate", REASON),
                ("POST", "triples/{}/restore", None),
            ):
                answers = [
                    await client.request(method, f"{URL}/{path.format(id_)}", json=body)
                    for id_ in (own["id"], unknown)
                ]
                texts = [answer.text.replace(own["id"], unknown) for answer in answers]
                assert texts[0] == texts[1], (method, path)
                assert answers[0].status_code == answers[1].status_code
            for path, body in (
                ("match", {"text": "Persimmonia and Ada"}),
                ("traverse", {"entity": own["subject_id"]}),
                ("triples", {"subject": own["subject_id"], "predicate": "is", "object": "X"}),
                ("triples", {"subject": "X", "predicate": "is", "object": own["object_id"]}),
            ):
                response = await client.post(f"{URL}/{path}", json=body)
                assert "Persimmonia" not in response.text.replace(
                    str(body["text"]) if "text" in body else "\x00", ""
                )
                assert response.status_code != HTTPStatus.CREATED
            if "user_id" in bound:
                await connect(stranger, "Bob", "is", "X", source={"memory_id": memory["id"]})
    await agent.request("PATCH", f"/v1/memories/{memory['id']}", json={"valid_until": "2026-01-01T00:00:00Z"})
    assert len(await triples(agent, user_id="bob")) == 1, (
        "what another user's memory says ends nothing of his"
    )
    assert [item["id"] for item in await triples(agent, user_id="ada")] == [own["id"]]
