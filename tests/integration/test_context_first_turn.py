"""LT10: the first turn of a session gets the newest memories if none matches, however it is reported."""

import pytest

from tests.agent import Agent, recalled_ids
from tests.conftest import Gateway


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """Return an agent whose key has all rights in its own tenant."""
    return Agent(gateway.client, gateway.tenant)


async def test_a_first_turn_that_was_reported_before_gets_the_five_newest_memories(agent: Agent) -> None:
    saved = [(await agent.save(f"Fact number {number}."))["id"] for number in range(7)]
    session = await agent.session()
    await agent.append_turn(session, "Zzyzx?", role="user")
    first = await agent.context(session, "Zzyzx?", record_turn=False)
    assert recalled_ids(first) == list(reversed(saved))[:5]
    assert ("newest" in first["stages"], first["first_turn"]) == (True, True)
    assert [message["content"] for message in first["messages"]].count("Zzyzx?") == 1


@pytest.mark.parametrize("second", ["Qwyjibo?", "Zzyzx?"])
async def test_a_second_turn_gets_no_newest_memories(agent: Agent, second: str) -> None:
    await agent.save("A fact.")
    session = await agent.session()
    for message in ("Zzyzx?", second):
        await agent.append_turn(session, message, role="user")
    context = await agent.context(session, second, record_turn=False)
    assert (recalled_ids(context), context["first_turn"]) == ([], False)


async def test_a_reported_turn_with_another_text_is_an_earlier_turn(agent: Agent) -> None:
    await agent.save("A fact.")
    session = await agent.session()
    await agent.append_turn(session, "Zzyzx?", role="user")
    context = await agent.context(session, "Qwyjibo?", record_turn=False)
    assert (recalled_ids(context), context["first_turn"]) == ([], False)


async def test_the_same_text_said_again_is_a_second_turn(agent: Agent) -> None:
    await agent.save("A fact.")
    session = await agent.session()
    await agent.append_turn(session, "Zzyzx?", role="user")
    context = await agent.context(session, "Zzyzx?")
    assert (recalled_ids(context), context["first_turn"]) == ([], False)
    assert [message["content"] for message in context["messages"]].count("Zzyzx?") == 2
