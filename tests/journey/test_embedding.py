"""Vectors: added to what the keyword index already finds, by a worker, from an endpoint."""

from tests.journey.agent import Agent, word
from tests.standins.models import ModelServer


async def test_ix6_what_was_saved_gets_its_vector_and_search_says_so(agent_with_model: Agent) -> None:
    secret = word()
    saved = await agent_with_model.save(f"The {secret} stands in the hall", enrich=False)
    assert [one["id"] for one in (await agent_with_model.search(secret))["results"]] == [saved["id"]]
    await agent_with_model.settled()
    response = await agent_with_model.search(f"{secret} stands", strategy="mean", min_similarity=0.3, explain=True)
    assert (response["stages"], response["degraded"]) == (["bm25", "dense"], [])
    assert response["results"][0]["scores"]["dense"] >= 0.3
    status = await agent_with_model.ask("GET", "/v1/status")
    assert status["pending"] == {"enrichment": 0, "embedding": 0, "index": 0}


async def test_lt7_a_vector_finds_what_no_keyword_does(agent_with_model: Agent) -> None:
    await agent_with_model.save("Ada sold her car", enrich=False)
    await agent_with_model.save("The roof leaks again", enrich=False)
    await agent_with_model.settled()
    response = await agent_with_model.search("automobile sold?", explain=True)
    assert response["results"][0]["content"] == "Ada sold her car"
    by_meaning = await agent_with_model.search("automobile", strategy="mean", explain=True, min_similarity=0.3)
    assert [one["content"] for one in by_meaning["results"]] == ["Ada sold her car"]
    assert by_meaning["results"][0]["scores"]["keyword"] == 0


async def test_se9_turns_are_found_by_keyword_at_once_and_by_vector_later(agent_with_model: Agent) -> None:
    secret = word()
    session = await agent_with_model.session()
    await agent_with_model.say(session, f"We met at the {secret}")
    assert await agent_with_model.turns_found(secret) == [f"We met at the {secret}"]
    await agent_with_model.settled()
    response = await agent_with_model.ask("POST", "/v1/turns/search", json={"query": secret, "explain": True})
    assert response["stages"] == ["bm25", "dense"]
    assert response["results"][0]["scores"]["dense"] > 0


async def test_ix6_the_same_text_is_embedded_once(agent_with_model: Agent, model: ModelServer) -> None:
    text = f"Only once: {word()}"
    await agent_with_model.save(text, agent_id="one", enrich=False)
    await agent_with_model.settled()
    await agent_with_model.save(text, agent_id="two", enrich=False)
    await agent_with_model.settled()
    assert [given for call in model.embedding_calls for given in call.texts if text in given] == [text]
