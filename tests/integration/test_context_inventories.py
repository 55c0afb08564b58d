"""CX1: what patrols and subagents wrote takes a bounded place in a context, however much it is."""

import asyncio
from typing import Any

import pytest

from tests.agent import Agent, find_block
from tests.conftest import Gateway, running_gateway

_LIMIT = 20


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """Return an agent whose key has all rights in its own tenant."""
    return Agent(gateway.client, gateway.tenant)


async def _put_findings(agent: Agent, count: int) -> list[str]:
    """Write findings one after the other, the first about the lighthouse; return their keys."""
    keys = [f"patrol/p{number // 50}/n{number}" for number in range(count)]
    for number, key in enumerate(keys):
        await agent.put(key, "something about the lighthouse" if number == 0 else "nothing of interest")
    return keys


def _ids(context: dict[str, Any], kind: str) -> list[str]:
    block = find_block(context, kind)
    return [] if block is None else list(block["ids"])


async def test_of_many_findings_the_newest_and_the_best_match_are_listed_and_the_others_counted(
    agent: Agent,
) -> None:
    keys = await _put_findings(agent, 60)
    context = await agent.context(await agent.session(), "Is the lighthouse lit?")
    newest = list(reversed(keys))[: _LIMIT - 1]
    assert _ids(context, "patrol") == [*newest, keys[0]]
    block = find_block(context, "patrol")
    assert block is not None
    assert f"({60 - _LIMIT} others)" in block["text"]


async def test_without_the_index_the_newest_findings_and_those_whose_keys_match_are_listed(
    gateway: Gateway, agent: Agent
) -> None:
    keys = await _put_findings(agent, 30)
    settings = gateway.resources.settings.model_copy(update={"qdrant_url": "http://127.0.0.1:1"})
    async with running_gateway(settings, gateway.tenant) as served:
        without_index = Agent(served.client, served.tenant)
        context = await without_index.context(await agent.session(), "What does n3 say?")
    assert _ids(context, "patrol") == [*list(reversed(keys))[: _LIMIT - 1], keys[3]]


async def test_all_findings_are_listed_up_to_the_limit_and_none_is_counted(agent: Agent) -> None:
    keys = await _put_findings(agent, _LIMIT)
    context = await agent.context(await agent.session(), "Is the lighthouse lit?")
    assert _ids(context, "patrol") == list(reversed(keys))
    block = find_block(context, "patrol")
    assert block is not None
    assert "others)" not in block["text"]


async def test_the_best_outline_is_found_among_all(agent: Agent) -> None:
    await _put_report(agent, "subagent/scout/old", "lighthouse")
    await asyncio.gather(*(_put_report(agent, f"subagent/scout/r{n}", "ferries") for n in range(11)))
    await _put_report(agent, "subagent/scout/new", "trains")
    context = await agent.context(await agent.session(), "Is the lighthouse lit?")
    assert _ids(context, "subagents") == ["subagent/scout/new-index", "subagent/scout/old-index"]
    block = find_block(context, "subagents")
    assert block is not None
    assert "(11 others)" in block["text"]


async def _put_report(agent: Agent, key: str, subject: str) -> None:
    await agent.put(key, f"# About {subject}\n\n" + "word " * 4000)
