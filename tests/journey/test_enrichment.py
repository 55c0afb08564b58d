"""Raw entries become focused ones, in a worker of its own, asking a model over HTTP."""

from http import HTTPStatus

from tests.journey.agent import Agent, Json, word
from tests.journey.rewriting import CATEGORY
from tests.standins.models import ModelServer


async def enriched(agent: Agent, content: str, **more: object) -> tuple[Json, list[Json]]:
    """Save, wait for the workers, and return the raw entry and its successors."""
    saved = await agent.save(content, **more)
    await agent.settled()
    raw = await agent.memory(saved["id"])
    return raw, [await agent.memory(one) for one in raw["superseded_by"]]


async def test_en1_a_raw_entry_is_replaced_by_its_successors(agent_with_model: Agent) -> None:
    train, oslo = word(), word()
    saved = await agent_with_model.save(f"Hello there. Ada takes the {train}. Ada moves to {oslo}.")
    assert saved["state"] == "pending"
    await agent_with_model.settled()
    raw = await agent_with_model.memory(saved["id"])
    successors = [await agent_with_model.memory(one) for one in raw["superseded_by"]]
    assert (raw["state"], raw["archive_reason"]) == ("archived", "enriched")
    assert {one["content"] for one in successors} == {f"Ada takes the {train}", f"Ada moves to {oslo}"}
    for one in successors:
        assert (one["state"], one["derived_from"], one["category"]) == ("final", [raw["id"]], CATEGORY)
    assert await agent_with_model.found(train, strategy="bm25") == [f"Ada takes the {train}"]
    assert await agent_with_model.found(train, state="archived", strategy="bm25") == [raw["content"]]


async def test_en1_history_tells_who_replaced_what_and_why(agent_with_model: Agent) -> None:
    raw, [successor] = await enriched(agent_with_model, f"Hello. The {word()} is green.")
    told = [(note["actor"], note["action"], note["reason"]) for note in await agent_with_model.history(raw["id"])]
    assert [action for _, action, _ in told] == ["created", "archived"]
    assert told[1] == ("enrichment", "archived", f"enriched into {successor['id']}")
    [born] = await agent_with_model.history(successor["id"])
    assert (born["actor"], born["action"]) == ("enrichment", "created")


async def test_en1_an_entry_with_nothing_durable_is_kept_as_it_was_written(agent_with_model: Agent) -> None:
    raw, successors = await enriched(agent_with_model, f"Hello from {word()}")
    assert (raw["state"], raw["archived_at"], successors) == ("kept-raw", None, [])
    assert await agent_with_model.found(raw["content"]) == [raw["content"]]


async def test_en1_an_entry_saved_without_enrichment_is_final_at_once(
    agent_with_model: Agent, model: ModelServer
) -> None:
    secret = word()
    raw, successors = await enriched(agent_with_model, f"Verbatim {secret}. As it is.", enrich=False)
    assert (raw["state"], successors) == ("final", [])
    assert not any(secret in call.prompt for call in model.chat_calls)


async def test_lt9_saving_the_text_of_an_archived_raw_reinforces_its_successors(agent_with_model: Agent) -> None:
    raw, [successor] = await enriched(agent_with_model, f"Hello. Tea at {word()}.")
    again = await agent_with_model.save(raw["content"])
    assert again["id"] == successor["id"]
    assert (await agent_with_model.memory(successor["id"]))["reinforcement_count"] == 2


async def test_lt4_an_archived_entry_is_read_but_not_changed(agent_with_model: Agent) -> None:
    raw, [successor] = await enriched(agent_with_model, f"Hello. Coffee at {word()}.")
    path = f"/v1/memories/{raw['id']}"
    problem = await agent_with_model.ask("PATCH", path, json={"importance": 1}, status=HTTPStatus.CONFLICT)
    assert successor["id"] in problem["detail"]


async def test_lt4_deleting_an_archived_entry_takes_what_came_of_it_alone(agent_with_model: Agent) -> None:
    secret = word()
    raw, successors = await enriched(agent_with_model, f"Hello. The {secret} is left. The {secret} is right.")
    assert len(successors) == 2
    await agent_with_model.ask("DELETE", f"/v1/memories/{raw['id']}")
    for one in (raw, *successors):
        await agent_with_model.ask("GET", f"/v1/memories/{one['id']}", status=HTTPStatus.NOT_FOUND)
    assert await agent_with_model.found(secret, strategy="bm25") == []


async def test_lt13_enrichment_does_not_bring_a_deleted_fact_back(agent_with_model: Agent) -> None:
    secret, other = word(), word()
    _, [gone] = await enriched(agent_with_model, f"Hello. The code is {secret}.")
    await agent_with_model.ask("DELETE", f"/v1/memories/{gone['id']}")
    raw, successors = await enriched(agent_with_model, f"Hello. The code is {secret}. The door is {other}.")
    assert [one["content"] for one in successors] == [f"The door is {other}"]
    assert raw["state"] == "archived"
    assert await agent_with_model.found(secret, strategy="bm25") == []


async def test_lt13_an_explicit_save_lifts_the_tombstone(agent_with_model: Agent) -> None:
    secret = word()
    _, [gone] = await enriched(agent_with_model, f"Hello. The number is {secret}.")
    await agent_with_model.ask("DELETE", f"/v1/memories/{gone['id']}")
    await agent_with_model.save(gone["content"], enrich=False)
    _, successors = await enriched(agent_with_model, f"Hello again. The number is {secret}. Nothing else.")
    assert gone["content"] in [one["content"] for one in successors]
    assert await agent_with_model.found(secret, strategy="bm25") == [gone["content"]]
