"""A worker replaces raw memories with focused ones from a language model over HTTP."""

from http import HTTPStatus

from tests.agent import Agent, Json, random_word
from tests.journey.rewriting import CATEGORY
from tests.standins.models import ModelServer


async def save_and_enrich(agent: Agent, content: str, **more: object) -> tuple[Json, list[Json]]:
    """Save a memory, wait for the workers, and return the raw memory and its successors."""
    saved = await agent.save(content, **more)
    await agent.wait_until_idle()
    raw = await agent.memory(saved["id"])
    return raw, [await agent.memory(memory_id) for memory_id in raw["superseded_by"]]


async def test_en1_a_raw_memory_is_replaced_by_its_successors(agent_with_model: Agent) -> None:
    train, oslo = random_word(), random_word()
    saved = await agent_with_model.save(f"Hello there. Ada takes the {train}. Ada moves to {oslo}.")
    assert saved["state"] == "pending"
    await agent_with_model.wait_until_idle()
    raw = await agent_with_model.memory(saved["id"])
    successors = [await agent_with_model.memory(memory_id) for memory_id in raw["superseded_by"]]
    assert (raw["state"], raw["archive_reason"]) == ("archived", "enriched")
    assert {successor["content"] for successor in successors} == {
        f"Ada takes the {train}",
        f"Ada moves to {oslo}",
    }
    for successor in successors:
        assert successor["state"] == "final"
        assert successor["derived_from"] == [raw["id"]]
        assert successor["category"] == CATEGORY
    assert await agent_with_model.search_contents(train, strategy="bm25") == [f"Ada takes the {train}"]
    assert await agent_with_model.search_contents(train, state="archived", strategy="bm25") == [
        raw["content"]
    ]


async def test_en1_history_says_who_replaced_what_and_why(agent_with_model: Agent) -> None:
    raw, [successor] = await save_and_enrich(agent_with_model, f"Hello. The {random_word()} is green.")
    history = await agent_with_model.history(raw["id"])
    changes = [(change["actor"], change["action"], change["reason"]) for change in history]
    assert [action for _, action, _ in changes] == ["created", "archived"]
    assert changes[1] == ("enrichment", "archived", f"enriched into {successor['id']}")
    [creation] = await agent_with_model.history(successor["id"])
    assert (creation["actor"], creation["action"]) == ("enrichment", "created")


async def test_en1_a_memory_with_nothing_durable_is_kept_as_written(agent_with_model: Agent) -> None:
    raw, successors = await save_and_enrich(agent_with_model, f"Hello from {random_word()}")
    assert (raw["state"], raw["archived_at"], successors) == ("kept-raw", None, [])
    assert await agent_with_model.search_contents(raw["content"]) == [raw["content"]]


async def test_en1_a_memory_saved_without_enrichment_is_final_at_once(
    agent_with_model: Agent, model: ModelServer
) -> None:
    secret = random_word()
    raw, successors = await save_and_enrich(agent_with_model, f"Verbatim {secret}. As it is.", enrich=False)
    assert (raw["state"], successors) == ("final", [])
    assert not any(secret in call.prompt for call in model.chat_calls)


async def test_lt9_saving_the_text_of_an_archived_raw_memory_reinforces_its_successors(
    agent_with_model: Agent,
) -> None:
    raw, [successor] = await save_and_enrich(agent_with_model, f"Hello. Tea at {random_word()}.")
    resaved = await agent_with_model.save(raw["content"])
    assert resaved["id"] == successor["id"]
    assert (await agent_with_model.memory(successor["id"]))["reinforcement_count"] == 2


async def test_lt4_an_archived_memory_can_be_read_but_not_changed(agent_with_model: Agent) -> None:
    raw, [successor] = await save_and_enrich(agent_with_model, f"Hello. Coffee at {random_word()}.")
    path = f"/v1/memories/{raw['id']}"
    problem = await agent_with_model.request(
        "PATCH", path, json={"importance": 1}, status=HTTPStatus.CONFLICT
    )
    assert successor["id"] in problem["detail"]


async def test_lt4_deleting_an_archived_memory_deletes_its_successors(agent_with_model: Agent) -> None:
    secret = random_word()
    raw, successors = await save_and_enrich(
        agent_with_model, f"Hello. The {secret} is left. The {secret} is right."
    )
    assert len(successors) == 2
    await agent_with_model.request("DELETE", f"/v1/memories/{raw['id']}")
    for memory in (raw, *successors):
        await agent_with_model.request("GET", f"/v1/memories/{memory['id']}", status=HTTPStatus.NOT_FOUND)
    assert await agent_with_model.search_contents(secret, strategy="bm25") == []


async def test_lt13_enrichment_does_not_bring_a_deleted_fact_back(agent_with_model: Agent) -> None:
    secret, other = random_word(), random_word()
    _, [successor] = await save_and_enrich(agent_with_model, f"Hello. The code is {secret}.")
    await agent_with_model.request("DELETE", f"/v1/memories/{successor['id']}")
    raw, successors = await save_and_enrich(
        agent_with_model, f"Hello. The code is {secret}. The door is {other}."
    )
    assert [memory["content"] for memory in successors] == [f"The door is {other}"]
    assert raw["state"] == "archived"
    assert await agent_with_model.search_contents(secret, strategy="bm25") == []


async def test_lt13_an_explicit_save_removes_the_tombstone(agent_with_model: Agent) -> None:
    secret = random_word()
    _, [successor] = await save_and_enrich(agent_with_model, f"Hello. The number is {secret}.")
    await agent_with_model.request("DELETE", f"/v1/memories/{successor['id']}")
    await agent_with_model.save(successor["content"], enrich=False)
    _, successors = await save_and_enrich(
        agent_with_model, f"Hello again. The number is {secret}. Nothing else."
    )
    assert successor["content"] in [memory["content"] for memory in successors]
    assert await agent_with_model.search_contents(secret, strategy="bm25") == [successor["content"]]
