"""What was saved is found in the next request, even while the keyword channel leaves out new points."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.memory.longterm.filters import MemoryFilters
from shared.platform.resources import Resources
from shared.search.index.client import IndexQuery, SearchIndex
from shared.search.index.hits import Hit
from shared.search.index.missing_points import MissingPoints
from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.search.conftest import Hide

TEXT = "The heron nests by the weir."
Search = Callable[[Agent], Awaitable[list[str]]]


async def _memory(agent: Agent) -> list[str]:
    await agent.save(TEXT)
    return await agent.search_contents("heron")


async def _turn(agent: Agent) -> list[str]:
    await agent.append_turn(await agent.session(), TEXT)
    return await agent.search_turn_contents("heron")


async def _working(agent: Agent) -> list[str]:
    await agent.put("patrol/river/note", TEXT)
    found = await agent.request("POST", "/v1/working/search", json={"query": "heron"})
    return [entry["value"] for entry in found["results"]]


async def _observation(agent: Agent) -> list[str]:
    session = await agent.session()
    body = {"kind": "fact", "content": TEXT}
    await agent.request("POST", f"/v1/sessions/{session}/observations", json=body, status=201)
    found = await agent.request("POST", "/v1/observations/search", json={"query": "heron"})
    return [observation["content"] for observation in found["results"]]


KINDS: dict[str, Search] = {
    "memory": _memory,
    "turn": _turn,
    "working": _working,
    "observation": _observation,
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_record_is_found_by_keyword_in_the_next_request_although_its_channel_leaves_it_out(
    agent: Agent, hide: Hide, kind: str
) -> None:
    hide(lambda _: True)
    assert await KINDS[kind](agent) == [TEXT]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_recent_record_that_its_channel_returns_too_is_found_once(agent: Agent, kind: str) -> None:
    assert await KINDS[kind](agent) == [TEXT]


async def test_a_recent_record_without_a_word_of_the_query_is_not_found(agent: Agent, hide: Hide) -> None:
    hide(lambda _: True)
    await agent.save("Nothing of the kind.")
    assert await agent.search_contents("heron") == []


async def test_recent_records_are_filtered_like_all_others(agent: Agent, hide: Hide) -> None:
    hide(lambda _: True)
    await agent.save(TEXT, user_id="ada")
    assert await agent.search_contents("heron") == []
    assert await agent.search_contents("heron", user_id="ada", tags=["bird"]) == []
    assert await agent.search_contents("heron", user_id="ada") == [TEXT]


async def test_the_new_text_of_a_memory_is_found_while_the_channel_knows_only_the_old_one(
    agent: Agent, hide: Hide
) -> None:
    memory = await agent.save(TEXT)
    hide(lambda _: True)
    await agent.request("PATCH", f"/v1/memories/{memory['id']}", json={"content": "The kite nests there."})
    assert await agent.search_contents("kite") == ["The kite nests there."]
    assert await agent.search_contents("heron") == []


async def test_a_missed_record_gets_the_score_that_the_keyword_channel_gives_it(
    gateway: Gateway, agent: Agent, hide: Hide
) -> None:
    for number in range(1, 13):
        words = ["heron"] * (number % 2) + ["weir"] * (number % 3) + ["mill"] * (number % 5)
        await agent.save(f"{' '.join(words)} {' '.join(f'word{number * n}' for n in range(number))}")
    new = (await agent.save("A heron, and a weir with a mill."))["id"]
    expected = await _hits(gateway, _index(gateway.resources, 3), "heron weir mill")
    hide(lambda record_id: record_id == new)
    found = await _hits(gateway, _index(gateway.resources, 3), "heron weir mill")
    assert found.keys() == expected.keys()
    assert found[new].keyword == pytest.approx(expected[new].keyword, rel=0.01)


@pytest.mark.parametrize("seconds", [0, 1e-6])
async def test_older_records_are_left_to_the_index(
    gateway: Gateway, agent: Agent, hide: Hide, seconds: float
) -> None:
    hide(lambda _: True)
    await agent.save(TEXT)
    assert await _hits(gateway, _index(gateway.resources, seconds), "heron") == {}


def _index(resources: Resources, recent_seconds: float) -> SearchIndex:
    missing_points = MissingPoints(resources.postgres)
    return SearchIndex(resources.postgres, resources.qdrant, None, 100, recent_seconds, missing_points)


async def _hits(gateway: Gateway, index: SearchIndex, query: str) -> dict[str, Hit]:
    conditions: Any = MemoryFilters().to_qdrant(Scope(gateway.tenant, "default", None))
    found = await index.search(IndexQuery(gateway.tenant, RecordKind.MEMORY, query, conditions))
    return {hit.record_id: hit for hit in found.hits}
