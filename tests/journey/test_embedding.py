"""Vectors: added to what the keyword index already finds, by a worker, from an endpoint."""

from tests.journey.agent import Agent, word
from tests.standins.models import ModelServer


async def test_ix6_what_was_saved_gets_its_vector_and_search_says_so(thinker: Agent) -> None:
    secret = word()
    saved = await thinker.save(f"The {secret} stands in the hall", enrich=False)
    assert [one["id"] for one in (await thinker.search(secret))["results"]] == [saved["id"]]
    await thinker.settled()
    answer = await thinker.search(f"{secret} stands", strategy="mean", min_similarity=0.3, explain=True)
    assert (answer["stages"], answer["degraded"]) == (["bm25", "dense"], [])
    assert answer["results"][0]["scores"]["dense"] >= 0.3
    status = await thinker.ask("GET", "/v1/status")
    assert status["pending"] == {"enrichment": 0, "embedding": 0, "index": 0}


async def test_lt7_a_vector_finds_what_no_keyword_does(thinker: Agent) -> None:
    await thinker.save("Ada sold her car", enrich=False)
    await thinker.save("The roof leaks again", enrich=False)
    await thinker.settled()
    answer = await thinker.search("automobile sold?", explain=True)
    assert answer["results"][0]["content"] == "Ada sold her car"
    by_meaning = await thinker.search("automobile", strategy="mean", explain=True, min_similarity=0.3)
    assert [one["content"] for one in by_meaning["results"]] == ["Ada sold her car"]
    assert by_meaning["results"][0]["scores"]["keyword"] == 0


async def test_se9_turns_are_found_by_keyword_at_once_and_by_vector_later(thinker: Agent) -> None:
    secret = word()
    session = await thinker.session()
    await thinker.say(session, f"We met at the {secret}")
    assert await thinker.turns_found(secret) == [f"We met at the {secret}"]
    await thinker.settled()
    answer = await thinker.ask("POST", "/v1/turns/search", json={"query": secret, "explain": True})
    assert answer["stages"] == ["bm25", "dense"]
    assert answer["results"][0]["scores"]["dense"] > 0


async def test_ix6_the_same_text_is_embedded_once(thinker: Agent, model: ModelServer) -> None:
    text = f"Only once: {word()}"
    await thinker.save(text, agent_id="one", enrich=False)
    await thinker.settled()
    await thinker.save(text, agent_id="two", enrich=False)
    await thinker.settled()
    assert [given for call in model.embedding_calls for given in call.texts if text in given] == [text]
