"""The conversation window: a cached one is shown if it is complete, else it is rebuilt from Postgres."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import orjson
import pytest
from sqlalchemy import delete

from shared.conversation.sessions.open import get_session
from shared.conversation.turns import window
from shared.conversation.turns.table import turn as turn_table
from shared.foundation import config
from shared.foundation.scope import Caller
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.idle_sessions import make_idle

MAX_TURNS = 4
SESSION = "trip"


@pytest.fixture
async def gateway(make_settings: Callable[..., config.Settings], tenant: str) -> AsyncIterator[Gateway]:
    """A gateway with a small window."""
    async with running_gateway(
        make_settings(window_max_turns=MAX_TURNS, context_window_turns=MAX_TURNS + 1, context_window_step=1),
        tenant,
    ) as served:
        yield served


@pytest.fixture
async def trip(agent: Agent) -> Agent:
    """An agent in whose session there are three turns: `1`, `2` and `3`."""
    await agent.session(id=SESSION)
    for number in range(1, 4):
        await agent.append_turn(SESSION, str(number))
    return agent


async def _read(gateway: Gateway, count: int = MAX_TURNS) -> list[str]:
    caller = Caller("k", gateway.tenant, frozenset())
    return [turn.content for turn in await window.read_window(gateway.resources, caller, SESSION, count)]


def _key(gateway: Gateway) -> str:
    return window.key(gateway.resources, gateway.tenant, SESSION)


async def _cached(gateway: Gateway) -> list[str]:
    members = await gateway.resources.redis.zrange(_key(gateway), 0, -1)
    return [orjson.loads(str(member))["content"] for member in members]


async def _mark_cached(gateway: Gateway, *dropped: int) -> None:
    """Mark the cached turns, so that one sees where a turn was read, and drop some of them."""
    redis, key = gateway.resources.redis, _key(gateway)
    for member in await redis.zrange(key, 0, -1):
        turn: dict[str, Any] = orjson.loads(str(member))
        await redis.zrem(key, str(member))
        if turn["seq"] not in dropped:
            marked = turn | {"content": f"cached {turn['content']}"}
            await redis.zadd(key, {orjson.dumps(marked).decode(): turn["seq"]})


async def test_a_complete_window_is_read_from_redis(trip: Agent, gateway: Gateway) -> None:
    await _mark_cached(gateway)
    assert await _read(gateway) == ["cached 1", "cached 2", "cached 3"]
    assert await _read(gateway, 2) == ["cached 2", "cached 3"]
    assert await _read(gateway, 1) == ["cached 3"]


@pytest.mark.parametrize("dropped", [1, 2, 3], ids=["first", "middle", "last"])
async def test_an_incomplete_window_is_read_from_postgres_and_rebuilt(
    trip: Agent, gateway: Gateway, dropped: int
) -> None:
    await _mark_cached(gateway, dropped)
    assert await _read(gateway) == ["1", "2", "3"]
    assert await _cached(gateway) == ["1", "2", "3"], "and nothing of what was there"
    await gateway.resources.redis.delete(_key(gateway))
    assert await _read(gateway, 2) == ["2", "3"]
    assert await _cached(gateway) == ["1", "2", "3"], "more than this reader asked for"


async def test_what_was_cached_without_its_place_is_incomplete(agent: Agent, gateway: Gateway) -> None:
    await agent.session(id=SESSION)
    await agent_says(agent, "1")
    await _mark_cached(gateway)
    redis, key = gateway.resources.redis, _key(gateway)
    [member] = await redis.zrange(key, 0, -1)
    packed = {name: value for name, value in orjson.loads(str(member)).items() if name not in window._PLACE}
    await redis.delete(key)
    await redis.zadd(key, {orjson.dumps(packed).decode(): 1})
    assert await _read(gateway) == ["1"]


async def test_turns_with_items_are_read_with_them(agent: Agent, gateway: Gateway) -> None:
    await agent.session(id=SESSION)
    item = {"type": "message", "text": "1"}
    turn = {"role": "assistant", "content": "1", "item": item}
    await agent.request("POST", f"/v1/sessions/{SESSION}/turns", json=turn, status=HTTPStatus.CREATED)
    caller = Caller("k", gateway.tenant, frozenset())
    [found] = await window.read_window(gateway.resources, caller, SESSION, 1)
    assert orjson.loads(found.item or "") == item


async def test_a_window_that_lacks_a_turn_before_those_that_are_read_is_complete(
    trip: Agent, gateway: Gateway
) -> None:
    await _mark_cached(gateway, 1)
    assert await _read(gateway, 2) == ["cached 2", "cached 3"]


async def test_a_window_holds_the_last_turns_and_no_more(trip: Agent, gateway: Gateway) -> None:
    await agent_says(trip, "4", "5", "6")
    assert await _cached(gateway) == ["3", "4", "5", "6"]
    assert await _read(gateway, 100) == ["3", "4", "5", "6"]


async def agent_says(agent: Agent, *contents: str) -> None:
    for content in contents:
        await agent.append_turn(SESSION, content)


async def test_an_idle_session_has_an_empty_window_whatever_is_cached(trip: Agent, gateway: Gateway) -> None:
    await make_idle(gateway, SESSION, idle_seconds=gateway.resources.settings.window_ttl + 1)
    assert await _read(gateway) == []
    assert await _cached(gateway) == ["1", "2", "3"]


async def test_without_redis_turns_are_read_from_postgres_and_not_cached(
    trip: Agent, gateway: Gateway
) -> None:
    await gateway.resources.redis.delete(_key(gateway))
    settings, caller = gateway.resources.settings, Caller("k", gateway.tenant, frozenset())
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        session = await get_session(tx, settings, caller, SESSION)
    turns = await window.load_turns(gateway.resources, session, 2, None)
    assert [turn.content for turn in turns] == ["2", "3"]
    assert await _cached(gateway) == []


async def test_a_session_whose_turns_are_deleted_has_an_empty_window(trip: Agent, gateway: Gateway) -> None:
    await gateway.resources.redis.delete(_key(gateway))
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(delete(turn_table).where(turn_table.c.tenant == gateway.tenant))
    assert await _read(gateway) == []


async def test_a_session_without_turns_has_an_empty_window(agent: Agent, gateway: Gateway) -> None:
    await agent.session(id=SESSION)
    assert await _read(gateway) == []
    await agent_says(agent, "1")
    assert await _read(gateway) == ["1"]


async def test_a_deleted_window_is_gone(trip: Agent, gateway: Gateway) -> None:
    await window.delete(gateway.resources, gateway.tenant, [SESSION])
    assert await _cached(gateway) == []
