"""A text of words that queries leave out is found by a query of such words."""

import pytest

from tests.agent import Agent

_TEXTS = ["Who are you?", "It is what it is.", "As is", "I will do it myself.", "Who is who", "Let it be"]


@pytest.mark.parametrize("text", _TEXTS)
async def test_a_text_of_stop_words_alone_is_found_by_itself(agent: Agent, text: str) -> None:
    for other in ("The harbour is open.", "Ada likes trains."):
        await agent.save(other)
    await agent.save(text)
    for query in (text, text.upper(), text.rsplit(maxsplit=1)[-1]):
        assert (await agent.search_contents(query))[:1] == [text], query


async def test_a_text_of_stop_words_alone_is_found_without_the_index(
    agent: Agent, without_index: Agent
) -> None:
    for text in (*_TEXTS, "Ada likes trains."):
        await agent.save(text)
    for text in _TEXTS:
        assert (await without_index.search_contents(text))[:1] == [text]


@pytest.mark.parametrize("text", _TEXTS)
async def test_a_text_of_stop_words_alone_is_found_in_a_context(agent: Agent, text: str) -> None:
    memory = await agent.save(text)
    await agent.save("Ada likes trains.")
    context = await agent.context(await agent.session(), text)
    assert memory["id"] in [recalled["id"] for recalled in context["recalled"]]
    assert "newest" not in context["stages"]
