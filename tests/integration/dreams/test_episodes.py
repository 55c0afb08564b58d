"""DR12, CX1: episodes are recalled under a header of their own, as carefully as everything recalled."""

import json
from collections.abc import AsyncIterator, Callable

import pytest

from services.local import ports
from shared.context import blocks
from shared.foundation import config
from tests.conftest import Gateway, serving
from tests.integration.dreams.conftest import dreamt
from tests.integration.longterm.conftest import beside
from tests.journey.agent import Agent, Json, block, recalled, shown
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

REPLAYED = 4
ASKED = "How did the lighthouse repair go?"


@pytest.fixture
async def house(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """A gateway with a model that dreams, and a window of four turns."""
    settings = make_settings(
        llm_base_url=models.url, llm_model="m", job_backoff=0.01, context_max_turns=REPLAYED
    )
    async with serving(settings, tenant) as served:
        yield served


@pytest.fixture
def keeper(house: Gateway) -> Agent:
    return Agent(house.client, house.tenant)


async def told(agent: Agent, content: str, kind: str = "task") -> str:
    """Keep an episode and return its id."""
    entry = await agent.save(content, category=f"episodic/{kind}", enrich=False)
    return str(entry["id"])


async def known(agent: Agent, content: str) -> str:
    """Keep a fact and return its id."""
    return str((await agent.save(content, category="project-context/coast", enrich=False))["id"])


def ids(context: Json, kind: str) -> list[str]:
    found = block(context, kind)
    return found["ids"] if found else []


async def test_an_episode_that_a_dream_kept_is_recalled_under_its_own_header(
    house: Gateway, keeper: Agent, models: ModelServer
) -> None:
    before = await keeper.session()
    await keeper.say(before, "The lighthouse repair failed twice and then held.", role="user")
    story = {
        "content": "The lighthouse repair failed twice and then held.",
        "category": "episodic/task",
        "importance": 0.5,
        "sourceSessions": [before],
    }
    models.chat_default = Reply(json.dumps({"toSave": [story], "toUpdate": []}))
    run = await dreamt(house, passes=["extract_episodes"])
    assert run["passes"][0]["applied"] == {"created": 1}, run
    fact = await known(keeper, "The lighthouse stands on the north pier.")

    context = await keeper.context(await keeper.session(), ASKED)

    kinds = [one["kind"] for one in context["blocks"]]
    assert kinds == ["recalled", "episodes"]
    assert ids(context, "recalled") == [fact]
    given = block(context, "episodes")
    assert given is not None
    header, fence, line, _ = given["text"].splitlines()
    assert (header, fence) == (blocks.EPISODES, "<memory-data>")
    assert line == f"- [{given['ids'][0]}] (episodic/task): The lighthouse repair failed twice and then held."
    assert recalled(context) == [fact, *given["ids"]]
    assert [one["category"] for one in context["recalled"]] == ["project-context/coast", "episodic/task"]


async def test_an_episode_is_one_however_its_category_is_written(keeper: Agent) -> None:
    story = str((await keeper.save("The lighthouse repair held.", category="Episodic/task"))["id"])
    fact = await known(keeper, "The lighthouse is white.")

    context = await keeper.context(await keeper.session(), ASKED)

    assert (ids(context, "recalled"), ids(context, "episodes")) == ([fact], [story])


async def test_at_most_five_episodes_are_recalled_and_none_takes_the_place_of_a_fact(keeper: Agent) -> None:
    episodes = [await told(keeper, f"The lighthouse repair went on, day {n}.") for n in range(9)]
    facts = [await known(keeper, f"Lighthouse lamp {n} is of brass and glass.") for n in range(9)]

    context = await keeper.context(await keeper.session(), ASKED, explain=True)

    assert len(ids(context, "recalled")) == 8
    assert set(ids(context, "recalled")) < set(facts)
    assert len(ids(context, "episodes")) == 5
    assert set(ids(context, "episodes")) < set(episodes)
    assert set(context["explain"]["scores"]) == set(recalled(context)), "each has its scores explained"


async def test_an_episode_is_given_once_replayed_with_its_turn_and_armed_again(keeper: Agent) -> None:
    story, fact = await told(keeper, "The lighthouse repair held."), await known(keeper, "Lighthouse: white.")
    session = await keeper.session()
    first = await keeper.context(session, ASKED)
    assert recalled(first) == [fact, story]
    second = await keeper.context(session, ASKED, explain=True)
    assert (recalled(second), second["blocks"]) == ([], [])
    assert set(second["explain"]["withheld"]) == {fact, story}
    replayed = [message["content"].splitlines()[0] for message in second["messages"][:2]]
    assert replayed == [blocks.RECALLED, blocks.EPISODES], "each under the header that it had"
    assert shown(second, story) == shown(second, fact) == 1
    for place in range(REPLAYED - 1):
        await keeper.say(session, f"Something else, {place}.")
    again = await keeper.context(session, ASKED)
    assert (ids(again, "episodes"), shown(again, story)) == ([story], 1)


async def test_a_deleted_episode_leaves_the_turn_that_it_was_given_with(keeper: Agent) -> None:
    story = await told(keeper, "The lighthouse repair held.")
    session = await keeper.session()
    assert shown(await keeper.context(session, ASKED), story) == 1
    await keeper.ask("DELETE", f"/v1/memories/{story}")
    after = await keeper.context(session, ASKED)
    assert (shown(after, story), shown(after, blocks.EPISODES)) == (0, 0)


async def test_under_a_budget_episodes_give_way_before_facts_and_are_then_given_later(keeper: Agent) -> None:
    story = await told(keeper, "The lighthouse repair failed twice and then held. " * 5)
    fact = await known(keeper, "The lighthouse is white.")
    session = await keeper.session()
    whole = await keeper.context(session, ASKED, record_turn=False)
    short = await keeper.context(session, ASKED, max_tokens=whole["tokens"] - 1, explain=True)
    assert (recalled(short), short["explain"]["shortened"]) == ([fact], ["episodes"])
    assert recalled(await keeper.context(session, ASKED)) == [story], "what was cut was not marked as given"


async def test_without_the_index_episodes_stand_under_their_header_all_the_same(
    house: Gateway, keeper: Agent
) -> None:
    story, fact = await told(keeper, "The lighthouse repair held."), await known(keeper, "Lighthouse: white.")
    async with beside(house, qdrant_url=f"http://127.0.0.1:{ports.pick_free_port()}") as away:
        context = await away.context(await away.session(), ASKED)
    assert (ids(context, "recalled"), ids(context, "episodes")) == ([fact], [story])
    assert "index" in context["degraded"]
