"""CX8: what a request, or an agent's profile, chooses for contexts."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.foundation import config
from tests.agent import Agent, Json, random_word, recalled_ids
from tests.conftest import Gateway, running_gateway


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture
def gateway(shared_gateway: Gateway) -> Gateway:
    return shared_gateway


@pytest.fixture
def scope() -> dict[str, str]:
    """An agent of its own for each test."""
    return {"agent_id": random_word()}


async def ask(agent: Agent, scope: dict[str, str], message: str, **options: Any) -> Json:
    return await agent.context(await agent.session(**scope), message, **options)


async def choose(agent: Agent, scope: dict[str, str], options: Json | None) -> Json:
    path = f"/v1/agents/{scope['agent_id']}"
    return dict(await agent.request("PUT", path, json={"context_options": options}))


async def test_limit_is_the_number_of_recalled_memories_also_of_the_newest(
    agent: Agent, scope: dict[str, str]
) -> None:
    for number in range(4):
        await agent.save(f"The lantern number {number} is lit.", **scope)
    for message in ("which lantern?", "zzyzx"):
        assert len(recalled_ids(await ask(agent, scope, message, limit=2))) == 2
        assert len(recalled_ids(await ask(agent, scope, message))) == 4


async def test_categories_are_searched_with_what_is_below_them_and_nothing_else(
    agent: Agent, scope: dict[str, str]
) -> None:
    saved = {
        category: (await agent.save(f"The lantern of {category}.", category=category, **scope))["id"]
        for category in ("a/b", "a/bc", "c", "d")
    }
    uncategorised = (await agent.save("The lantern of nothing.", **scope))["id"]
    chosen = {"categories": ["a/b", "c"]}
    for message in ("which lantern?", "zzyzx"):
        assert sorted(recalled_ids(await ask(agent, scope, message, **chosen))) == sorted(
            [saved["a/b"], saved["c"]]
        )
    everything = await ask(agent, scope, "which lantern?", categories=[])
    assert sorted(recalled_ids(everything)) == sorted([*saved.values(), uncategorised])


async def test_only_the_named_blocks_are_shown(agent: Agent, scope: dict[str, str]) -> None:
    await agent.save("The lantern is lit.", **scope)
    await agent.save("We lit the lantern.", category="episodic/task", **scope)
    other = await agent.session(**scope)
    await agent.append_turn(other, "The lantern was lit yesterday.")
    session = await agent.session(**scope)
    await agent.put(f"session/{session}/note", "x")
    await agent.put(f"patrol/{scope['agent_id']}/finding", "x")

    async def kinds(**options: Any) -> list[str]:
        context = await agent.context(session, "is the lantern lit?", record_turn=False, **options)
        return [block["kind"] for block in context["blocks"]]

    assert await kinds() == ["recalled", "episodes", "working_memory", "patrol"]
    every = ["recalled", "episodes", "past_turns", "working_memory", "patrol", "subagents"]
    assert await kinds(blocks=every) == every[:-1], "past turns are off by default, and on by name"
    for kind in every[:-1]:
        assert await kinds(blocks=[kind]) == [kind]
    assert await kinds(blocks=[]) == []


async def test_common_memories_of_other_agents_are_recalled_and_no_users(
    agent: Agent, scope: dict[str, str]
) -> None:
    other = {"agent_id": random_word()}
    common = await agent.save("The lantern of all.", **other)
    await agent.save("The lantern of Ada.", user_id="ada", **other)
    await agent.save("The lantern of a third agent.", agent_id=random_word())
    own = await agent.save("My lantern.", user_id="ada", **scope)
    of_ada = scope | {"user_id": "ada"}
    for message in ("which lantern?", "zzyzx"):
        context = await ask(agent, of_ada, message, agents=[other["agent_id"]])
        assert sorted(recalled_ids(context)) == sorted([common["id"], own["id"]])
        assert recalled_ids(await ask(agent, of_ada, message)) == [own["id"]]
    session = await agent.session(**of_ada)
    await agent.context(session, "which lantern?", agents=[other["agent_id"]])
    await agent.request("DELETE", f"/v1/agents/{other['agent_id']}")
    context = await agent.context(session, "zzyzx")
    assert common["id"] not in str(context["messages"]), "forgetting reaches the sessions of other agents"


async def test_a_key_of_one_agent_searches_no_other_even_if_the_profile_says_so(
    agent: Agent, gateway: Gateway, scope: dict[str, str]
) -> None:
    other = {"agent_id": random_word()}
    await agent.save("The lantern of another agent.", **other)
    chosen = {"agents": [other["agent_id"]]}
    async with await gateway.new_client(**scope) as client:
        bound = Agent(client, gateway.tenant)
        session = await bound.session(**scope)
        path = f"/v1/sessions/{session}/context"
        await bound.request("POST", path, json={"message": "which lantern?", **chosen}, status=403)
        await bound.request(
            "PUT", f"/v1/agents/{scope['agent_id']}", json={"context_options": chosen}, status=403
        )
        await choose(agent, scope, chosen)
        assert recalled_ids(await bound.context(session, "which lantern?", record_turn=False)) == []
    assert len(recalled_ids(await agent.context(session, "which lantern?"))) == 1


async def test_an_agents_profile_completes_what_a_request_does_not_choose(
    agent: Agent, scope: dict[str, str]
) -> None:
    for number in range(4):
        await agent.save(f"The lantern number {number} is lit.", category=f"c{number % 2}", **scope)
    options = {"limit": 1, "categories": ["c0"], "blocks": ["recalled", "patrol"], "min_similarity": 0.2}
    assert (await choose(agent, scope, options))["context_options"] == options | {
        "blocks": ["patrol", "recalled"]
    }
    assert len(recalled_ids(await ask(agent, scope, "which lantern?"))) == 1
    of_request = await ask(agent, scope, "which lantern?", limit=4)
    assert len(recalled_ids(of_request)) == 2, "the categories are still the agent's"
    assert (await choose(agent, scope, None))["context_options"] is None
    assert len(recalled_ids(await ask(agent, scope, "which lantern?"))) == 4


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"limit": True}, "limit"),
        ({"min_similarity": 1.1}, "min_similarity"),
        ({"categories": ["a//b"]}, "categories.0"),
        ({"categories": ["a"] * 33}, "categories"),
        ({"blocks": ["turns"]}, "blocks.0"),
        ({"blocks": ["recalled"] * 33}, "blocks"),
        ({"agents": ["ada.lovelace@example.org", " "]}, "agents.1"),
        ({"agents": ["a"] * 17}, "agents"),
        ({"limits": 3}, "limits"),
    ],
)
async def test_a_bad_option_is_refused_in_requests_and_in_profiles(
    agent: Agent, scope: dict[str, str], options: Json, field: str
) -> None:
    session = await agent.session(**scope)
    path = f"/v1/sessions/{session}/context"
    problem = await agent.request("POST", path, json={"message": "x", **options}, status=422)
    assert problem["errors"][0]["field"].endswith(field)
    path = f"/v1/agents/{scope['agent_id']}"
    await agent.request("PUT", path, json={"context_options": options}, status=422)
    await agent.request("GET", path, status=404)
