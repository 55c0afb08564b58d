"""CV4, MM6: a playbook goes with the turns of its flow, and waits again without the turn that decided."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shared.foundation.stages import RecordKind
from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.forgetting.conftest import records_with
from tests.integration.playbooks.conftest import found_ids, record
from tests.state import StateInspector

QUERY = "Find me a marmalade in Lisbon."
SESSION = "shopping"
TURNS = f"/v1/sessions/{SESSION}/turns"
Withdraw = Callable[[Agent], Awaitable[Any]]


async def points(gateway: Gateway) -> int:
    """Return the number of points of playbooks."""
    index = gateway.resources.search_index
    collection = (await index.live(RecordKind.PLAYBOOK)).collection
    condition = {"filter": {"must": [{"key": "tenant", "match": {"value": gateway.tenant}}]}, "exact": True}
    counted = await gateway.resources.qdrant.call("POST", f"collections/{collection}/points/count", condition)
    return int(counted["count"])


async def edit(agent: Agent, seq: int) -> None:
    await agent.request("PATCH", f"{TURNS}/{seq}", json={"content": "something else"})


async def delete(agent: Agent, seq: int) -> None:
    await agent.request("DELETE", f"{TURNS}/{seq}")


@pytest.fixture
async def agent(agent: Agent) -> Agent:
    """An agent with a session of five turns: one of before the flow, and four of the flow."""
    await agent.session(id=SESSION)
    await agent.append_turn(SESSION, "What time is it?", "user")
    await agent.append_turn(SESSION, QUERY, "user")
    await agent.append_turn(SESSION, "Dark or light?")
    await agent.append_turn(SESSION, "Dark, please.", "user")
    await agent.append_turn(SESSION, "It is ordered.")
    return agent


@pytest.mark.parametrize(
    "withdraw",
    [
        lambda agent: edit(agent, 2),
        lambda agent: edit(agent, 4),
        lambda agent: delete(agent, 2),
        lambda agent: delete(agent, 5),
        lambda agent: agent.request("POST", f"{TURNS}/pop"),
        lambda agent: agent.request("DELETE", TURNS),
        lambda agent: agent.client.delete(f"/v1/sessions/{SESSION}"),
    ],
    ids=["first edited", "middle edited", "first deleted", "last deleted", "popped", "cleared", "session"],
)
async def test_it_goes_with_every_turn_of_its_flow(
    agent: Agent, gateway: Gateway, inspector: StateInspector, withdraw: Withdraw
) -> None:
    playbook = await record(
        agent, session_id=SESSION, user_query=QUERY, satisfied=True, slots={"what": "a dark marmalade"}
    )
    assert await found_ids(agent, flow="book_flight") == [playbook["id"]]
    await withdraw(agent)
    await agent.request("GET", f"/v1/playbooks/{playbook['id']}", status=404)
    assert await found_ids(agent, flow="book_flight") == []
    assert await records_with(inspector, gateway, "dark marmalade") == []


async def test_it_stays_when_a_turn_of_before_or_after_goes(agent: Agent) -> None:
    playbook = await record(agent, session_id=SESSION, user_query=QUERY, satisfied=True)
    await agent.append_turn(SESSION, "And what time is it now?", "user")
    await edit(agent, 1)
    await delete(agent, 1)
    await delete(agent, 6)
    assert await found_ids(agent, flow="book_flight") == [playbook["id"]]


async def test_a_query_in_other_words_belongs_to_the_users_last_turn(agent: Agent) -> None:
    playbook = await record(agent, session_id=SESSION, user_query="dark jam for Lisbon", satisfied=True)
    await edit(agent, 2)
    assert await found_ids(agent, flow="book_flight") == [playbook["id"]]
    await edit(agent, 4)
    await agent.request("GET", f"/v1/playbooks/{playbook['id']}", status=404)


async def test_without_the_turn_that_decided_it_waits_for_the_next_one(
    agent: Agent, gateway: Gateway
) -> None:
    playbook = await record(agent, session_id=SESSION, user_query=QUERY)
    await agent.append_turn(SESSION, "And which trains run on Sunday?", "user")
    path = f"/v1/playbooks/{playbook['id']}"
    assert (await agent.request("GET", path))["reason"] == "continued"
    assert await points(gateway) == 1
    await delete(agent, 6)
    assert (await agent.request("GET", path))["reason"] == "waiting"
    assert await found_ids(agent, flow="book_flight") == []
    assert await points(gateway) == 0
    await agent.append_turn(SESSION, "No, that's wrong. I meant light marmalade.", "user")
    assert (await agent.request("GET", path))["reason"] == "corrected"
    await delete(agent, 7)
    await agent.append_turn(SESSION, "And which trains run on Monday?", "user")
    assert await found_ids(agent, query=QUERY) == [playbook["id"]]
    assert await points(gateway) == 1
