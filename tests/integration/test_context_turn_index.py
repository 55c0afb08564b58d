"""SE9: the turn that a context records is indexed after the answer, and found all the same."""

import asyncio
from typing import Any

import pytest

from shared.search.index import points
from tests.agent import Agent, wait_until
from tests.conftest import Gateway


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """Return an agent whose key has all rights in its own tenant."""
    return Agent(gateway.client, gateway.tenant)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Hold back every write to the index until the event is set."""
    may_write, write_records = asyncio.Event(), points.write_records

    async def wait_and_write(*arguments: Any, **options: Any) -> None:
        await may_write.wait()
        await write_records(*arguments, **options)

    monkeypatch.setattr(points, "write_records", wait_and_write)
    return may_write


async def test_a_context_answers_before_its_turn_is_indexed_and_a_search_waits_for_it(
    agent: Agent, held: asyncio.Event
) -> None:
    session = await agent.session()
    assert (await agent.context(session, "Is the marmalade vegan?"))["seq"] == 1
    search = asyncio.create_task(agent.search_turn_contents("marmalade"))
    await asyncio.wait({search}, timeout=0.5)
    assert not search.done(), "it waits for the turn"
    held.set()
    assert await search == ["Is the marmalade vegan?"]


async def test_a_turn_is_indexed_soon_though_nobody_searches(agent: Agent, gateway: Gateway) -> None:
    session = await agent.session()
    await agent.context(session, "Is the marmalade vegan?")
    writer = gateway.resources.index_writer
    await asyncio.wait_for(writer.finish_writes(gateway.tenant), 5)  # it takes a second on a machine at rest

    async def is_indexed() -> bool:
        jobs = (await agent.request("GET", "/v1/status"))["pending"]
        return not jobs["index"]

    assert await wait_until(is_indexed, 5)


async def test_a_gateway_that_stops_writes_what_it_promised(
    agent: Agent, gateway: Gateway, held: asyncio.Event
) -> None:
    session = await agent.session()
    await agent.context(session, "Is the marmalade vegan?")
    closing = asyncio.create_task(gateway.resources.index_writer.close())
    await asyncio.sleep(0)
    assert not closing.done()
    held.set()
    await closing
    assert await agent.search_turn_contents("marmalade") == ["Is the marmalade vegan?"]
