"""What matches is found even if a hundred better hits do not count: by state, by expiry, by rights of a key.

The gateway reads ten hits per channel here, and everything that may be found ranks below the first ten.
"""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import func, update

from shared.conversation.sessions.table import session as session_table
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.table import memory as memory_table
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway

_QUERY, _BETTER, _WORSE = "lantern", "lantern lantern", "A lantern and many other words about the harbour."
_BETTER_COUNT = 30


@pytest.fixture
async def narrow(gateway: Gateway) -> AsyncIterator[Gateway]:
    """Serve a gateway that reads ten hits per channel, and not the records of the last seconds besides."""
    changes = {"search_candidates": 10, "search_recent_seconds": 0.0}
    settings = gateway.resources.settings.model_copy(update=changes)
    async with running_gateway(settings, gateway.tenant) as served:
        yield served


@pytest.fixture
def agent(narrow: Gateway) -> Agent:
    """Return an agent whose key has all rights."""
    return Agent(narrow.client, narrow.tenant)


@pytest.mark.parametrize("max_rare", [1000, 1])
async def test_memories_of_a_state_are_found_below_the_first_hits_whether_many_or_few_have_it(
    narrow: Gateway, agent: Agent, monkeypatch: pytest.MonkeyPatch, max_rare: int
) -> None:
    monkeypatch.setattr(memory_search, "_MAX_RARE", max_rare)
    contents = [f"{_BETTER} {number}" for number in range(_BETTER_COUNT)]
    worse = [f"{_WORSE} {number}" for number in range(3)]
    body = {"memories": [{"content": content} for content in [*contents, *worse]]}
    await agent.request("POST", "/v1/memories/batch", json=body, status=HTTPStatus.CREATED)
    async with narrow.resources.postgres.for_tenant(narrow.tenant) as tx:
        is_worse = memory_table.c.content.in_(worse)
        await tx.execute(update(memory_table).where(is_worse).values(state="kept-raw"))
    assert sorted(await agent.search_contents(_QUERY, state="kept-raw", limit=5)) == worse
    assert await agent.search_contents(_QUERY, state="failed") == []
    assert len(await agent.search_contents(_QUERY, limit=5)) == 5


async def test_turns_and_observations_are_found_below_those_of_expired_sessions(
    narrow: Gateway, agent: Agent
) -> None:
    expired, live = await agent.session(ttl_seconds=600), await agent.session()
    await _fill(agent, expired, [_BETTER] * _BETTER_COUNT)
    await _fill(agent, live, [_WORSE])
    async with narrow.resources.postgres.for_tenant(narrow.tenant) as tx:
        is_expired = session_table.c.id == expired
        await tx.execute(update(session_table).where(is_expired).values(expires_at=func.now()))
    assert await agent.search_turn_contents(_QUERY) == [_WORSE]
    found = await agent.request("POST", "/v1/observations/search", json={"query": _QUERY})
    assert [observation["content"] for observation in found["results"]] == [_WORSE]


async def _fill(agent: Agent, session: str, contents: list[str]) -> None:
    path = f"/v1/sessions/{session}"
    turns: list[dict[str, Any]] = [{"role": "assistant", "content": content} for content in contents]
    await agent.request("POST", f"{path}/turns/batch", json={"turns": turns}, status=HTTPStatus.CREATED)
    for content in contents:
        body = {"kind": "fact", "content": content}
        await agent.request("POST", f"{path}/observations", json=body, status=HTTPStatus.CREATED)


async def test_working_memory_of_a_bound_key_is_found_below_that_of_others(
    narrow: Gateway, agent: Agent
) -> None:
    foreign, own = await agent.session(user_id="ada"), await agent.session(user_id="bob")
    for number in range(_BETTER_COUNT):
        await agent.put(f"session/{foreign}/n{number}", _BETTER)
    await agent.put(f"session/{own}/note", _WORSE)
    async with await narrow.new_client(user_id="bob") as client:
        found = await Agent(client, narrow.tenant).request(
            "POST", "/v1/working/search", json={"query": _QUERY, "limit": 5}
        )
    assert [entry["value"] for entry in found["results"]] == [_WORSE]
