"""DR12, CX1: episodes are recalled under a header of their own, with the rules of all recalled memories."""

import json
from collections.abc import AsyncIterator, Callable

import pytest

from services.local import ports
from shared.context import blocks
from shared.foundation import config
from tests.agent import Agent, Json, count_occurrences, find_block, recalled_ids
from tests.conftest import Gateway, running_gateway
from tests.integration.dreams.conftest import run_dream
from tests.second_gateway import beside
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

REPLAYED = 4
ASKED = "How did the lighthouse repair go?"


@pytest.fixture
async def model_gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model and a conversation window of four turns."""
    settings = make_settings(
        llm_base_url=models.url,
        llm_model="m",
        job_backoff=0.01,
        context_window_turns=REPLAYED + 1,
        window_max_turns=REPLAYED + 1,  # it moves without a summary
        context_window_step=1,
    )
    async with running_gateway(settings, tenant) as served:
        yield served


@pytest.fixture
def keeper(model_gateway: Gateway) -> Agent:
    return Agent(model_gateway.client, model_gateway.tenant)


async def save_episode(agent: Agent, content: str, kind: str = "task") -> str:
    """Save an episode and return its id."""
    memory = await agent.save(content, category=f"episodic/{kind}", enrich=False)
    return str(memory["id"])


async def save_fact(agent: Agent, content: str) -> str:
    """Save a fact and return its id."""
    return str((await agent.save(content, category="project-context/coast", enrich=False))["id"])


def ids(context: Json, kind: str) -> list[str]:
    block_or_none = find_block(context, kind)
    return block_or_none["ids"] if block_or_none else []


async def test_an_episode_that_a_dream_created_is_recalled_under_its_own_header(
    model_gateway: Gateway, keeper: Agent, models: ModelServer
) -> None:
    earlier_session = await keeper.session()
    await keeper.append_turn(
        earlier_session, "The lighthouse repair failed twice and then held.", role="user"
    )
    story = {
        "content": "The lighthouse repair failed twice and then held.",
        "category": "episodic/task",
        "importance": 0.5,
        "sourceSessions": [earlier_session],
    }
    models.chat_default = Reply(json.dumps({"toSave": [story], "toUpdate": []}))
    run = await run_dream(model_gateway, passes=["extract_episodes"])
    assert run["passes"][0]["applied"] == {"created": 1}, run
    fact = await save_fact(keeper, "The lighthouse stands on the north pier.")

    context = await keeper.context(await keeper.session(), ASKED)

    kinds = [context_block["kind"] for context_block in context["blocks"]]
    assert kinds == ["recalled", "episodes"]
    assert ids(context, "recalled") == [fact]
    episode_block = find_block(context, "episodes")
    assert episode_block is not None
    header, fence, line, _ = episode_block["text"].splitlines()
    assert (header, fence) == (blocks.EPISODES, "<memory-data>")
    assert (
        line
        == f"- [{episode_block['ids'][0]}] (episodic/task): The lighthouse repair failed twice and then held."
    )
    assert recalled_ids(context) == [fact, *episode_block["ids"]]
    assert [memory["category"] for memory in context["recalled"]] == [
        "project-context/coast",
        "episodic/task",
    ]


async def test_an_episode_is_recognised_whatever_the_case_of_its_category(keeper: Agent) -> None:
    story = str((await keeper.save("The lighthouse repair held.", category="Episodic/task"))["id"])
    fact = await save_fact(keeper, "The lighthouse is white.")

    context = await keeper.context(await keeper.session(), ASKED)

    assert (ids(context, "recalled"), ids(context, "episodes")) == ([fact], [story])


async def test_at_most_five_episodes_are_recalled_and_none_takes_the_place_of_a_fact(keeper: Agent) -> None:
    episodes = [await save_episode(keeper, f"The lighthouse repair went on, day {n}.") for n in range(9)]
    facts = [await save_fact(keeper, f"Lighthouse lamp {n} is of brass and glass.") for n in range(9)]

    context = await keeper.context(await keeper.session(), ASKED, explain=True)

    assert len(ids(context, "recalled")) == 8
    assert set(ids(context, "recalled")) < set(facts)
    assert len(ids(context, "episodes")) == 5
    assert set(ids(context, "episodes")) < set(episodes)
    assert set(context["explain"]["scores"]) == set(recalled_ids(context)), (
        "the scores of each one are explained"
    )


async def test_an_episode_is_injected_once_replayed_with_its_turn_and_injected_again_after_the_window(
    keeper: Agent,
) -> None:
    story, fact = (
        await save_episode(keeper, "The lighthouse repair held."),
        await save_fact(keeper, "Lighthouse: white."),
    )
    session = await keeper.session()
    first = await keeper.context(session, ASKED)
    assert recalled_ids(first) == [fact, story]
    second = await keeper.context(session, ASKED, explain=True)
    assert (recalled_ids(second), second["blocks"]) == ([], [])
    assert set(second["explain"]["withheld"]) == {fact, story}
    replayed = [message["content"].splitlines()[0] for message in second["messages"][:2]]
    assert replayed == [blocks.RECALLED, blocks.EPISODES], "each under its own header"
    assert count_occurrences(second, story) == count_occurrences(second, fact) == 1
    for number in range(REPLAYED - 1):
        await keeper.append_turn(session, f"Something else, {number}.")
    third = await keeper.context(session, ASKED)
    assert (ids(third, "episodes"), count_occurrences(third, story)) == ([story], 1)


async def test_a_deleted_episode_is_removed_from_the_turn_that_it_was_injected_with(keeper: Agent) -> None:
    story = await save_episode(keeper, "The lighthouse repair held.")
    session = await keeper.session()
    assert count_occurrences(await keeper.context(session, ASKED), story) == 1
    await keeper.request("DELETE", f"/v1/memories/{story}")
    after = await keeper.context(session, ASKED)
    assert (count_occurrences(after, story), count_occurrences(after, blocks.EPISODES)) == (0, 0)


async def test_under_a_budget_episodes_are_shortened_before_facts_and_injected_later(keeper: Agent) -> None:
    story = await save_episode(keeper, "The lighthouse repair failed twice and then held. " * 5)
    fact = await save_fact(keeper, "The lighthouse is white.")
    session = await keeper.session()
    whole = await keeper.context(session, ASKED, record_turn=False)
    short = await keeper.context(session, ASKED, max_tokens=whole["tokens"] - 1, explain=True)
    assert (recalled_ids(short), short["explain"]["shortened"]) == ([fact], ["episodes"])
    assert recalled_ids(await keeper.context(session, ASKED)) == [story], (
        "a memory that was cut off is not marked as injected"
    )


async def test_without_the_index_episodes_still_have_their_own_header(
    model_gateway: Gateway, keeper: Agent
) -> None:
    story, fact = (
        await save_episode(keeper, "The lighthouse repair held."),
        await save_fact(keeper, "Lighthouse: white."),
    )
    async with beside(model_gateway, qdrant_url=f"http://127.0.0.1:{ports.pick_free_port()}") as agent:
        context = await agent.context(await agent.session(), ASKED)
    assert (ids(context, "recalled"), ids(context, "episodes")) == ([fact], [story])
    assert "index" in context["degraded"]
