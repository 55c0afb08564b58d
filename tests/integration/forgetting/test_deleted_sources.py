"""FG1: a user's text in a common memory is erased with them, also if its session was deleted before."""

from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.forgetting.conftest import records_with
from tests.state import StateInspector

HERON, OTTER = "The heron nests by the weir.", "The otter sleeps by the mill."


async def save(agent: Agent, content: str, session: str) -> None:
    """Save a memory of all users that comes from a session, for the first time or again."""
    body = {"content": content, "source": {"session_id": session}}
    (await agent.client.post("/v1/memories", json=body)).raise_for_status()


async def test_a_common_memory_goes_with_the_user_whose_session_was_deleted_before(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await agent.session(id="trip", user_id="ada")
    await agent.session(id="visit", user_id="bob")
    await save(agent, HERON, "trip")
    await save(agent, OTTER, "visit")
    await save(agent, OTTER, "trip")
    await agent.request("DELETE", "/v1/sessions/trip")
    assert set(await agent.search_contents("heron otter")) == {HERON, OTTER}, (
        "a session takes no memory along"
    )

    await agent.request("DELETE", "/v1/users/ada")

    assert await records_with(inspector, gateway, "heron") == []
    assert await records_with(inspector, gateway, "otter") == [], "one of its sources is ada's"
    kept = await records_with(inspector, gateway, "trip")
    assert [name for name in kept if name.startswith("deleted_source")] == []


async def test_a_memory_of_a_later_session_of_the_same_id_stays(agent: Agent) -> None:
    await agent.session(id="trip", user_id="ada")
    await save(agent, HERON, "trip")
    await agent.request("DELETE", "/v1/sessions/trip")
    await agent.session(id="trip", user_id="bob")
    await save(agent, OTTER, "trip")

    await agent.request("DELETE", "/v1/users/ada")

    assert await agent.search_contents("heron otter") == [OTTER]
