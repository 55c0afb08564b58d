"""A worker adds embeddings from an endpoint to records that keyword search already finds."""

from tests.agent import Agent, random_word
from tests.standins.models import ModelServer


async def test_ix6_a_saved_memory_gets_its_embedding_and_the_search_response_says_so(
    agent_with_model: Agent,
) -> None:
    secret = random_word()
    saved = await agent_with_model.save(f"The {secret} stands in the hall", enrich=False)
    assert [memory["id"] for memory in (await agent_with_model.search(secret))["results"]] == [saved["id"]]
    await agent_with_model.wait_until_idle()
    response = await agent_with_model.search(
        f"{secret} stands", strategy="mean", min_similarity=0.3, explain=True
    )
    assert (response["stages"], response["degraded"]) == (["bm25", "dense"], [])
    assert response["results"][0]["scores"]["dense"] >= 0.3
    status = await agent_with_model.request("GET", "/v1/status")
    assert set(status["pending"].values()) == {0}


async def test_lt7_a_vector_finds_a_memory_that_no_keyword_finds(agent_with_model: Agent) -> None:
    await agent_with_model.save("Ada sold her car", enrich=False)
    await agent_with_model.save("The roof leaks again", enrich=False)
    await agent_with_model.wait_until_idle()
    response = await agent_with_model.search("automobile sold?", explain=True)
    assert response["results"][0]["content"] == "Ada sold her car"
    by_vector = await agent_with_model.search("automobile", strategy="mean", explain=True, min_similarity=0.3)
    assert [memory["content"] for memory in by_vector["results"]] == ["Ada sold her car"]
    assert by_vector["results"][0]["scores"]["keyword"] == 0


async def test_se9_turns_are_found_by_keyword_at_once_and_by_vector_later(agent_with_model: Agent) -> None:
    secret = random_word()
    session = await agent_with_model.session()
    await agent_with_model.append_turn(session, f"We met at the {secret}")
    assert await agent_with_model.search_turn_contents(secret) == [f"We met at the {secret}"]
    await agent_with_model.wait_until_idle()
    response = await agent_with_model.request(
        "POST", "/v1/turns/search", json={"query": secret, "explain": True}
    )
    assert response["stages"] == ["bm25", "dense"]
    assert response["results"][0]["scores"]["dense"] > 0


async def test_ix6_the_same_text_is_embedded_once(agent_with_model: Agent, model: ModelServer) -> None:
    text = f"Only once: {random_word()}"
    await agent_with_model.save(text, agent_id="one", enrich=False)
    await agent_with_model.wait_until_idle()
    await agent_with_model.save(text, agent_id="two", enrich=False)
    await agent_with_model.wait_until_idle()
    assert [embedded for call in model.embedding_calls for embedded in call.texts if text in embedded] == [
        text
    ]
