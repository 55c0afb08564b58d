"""LT20: a search with a query is read page by page: no result twice, and none missing."""

from http import HTTPStatus
from typing import Any

import pytest

from services.gateway import search_cursor
from tests.agent import Agent
from tests.conftest import Gateway
from tests.second_gateway import beside

_COUNT, _COPIES = 130, 15
_REFUSED = HTTPStatus.UNPROCESSABLE_ENTITY


async def _save(agent: Agent, count: int, **fields: Any) -> list[str]:
    body = {"memories": [{"content": f"lantern {number}", **fields} for number in range(count)]}
    saved = await agent.request("POST", "/v1/memories/batch", json=body, status=HTTPStatus.CREATED)
    return [memory["id"] for memory in saved["results"]]


async def _pages(agent: Agent, **body: Any) -> list[list[str]]:
    pages, cursor = [], None
    while True:
        page = await agent.search("lantern", cursor=cursor, **body)
        pages.append([memory["id"] for memory in page["results"]])
        cursor = page["next_cursor"]
        if cursor is None:
            return pages


async def test_pages_of_a_search_hold_each_match_once(
    gateway: Gateway, agent: Agent, unused_url: str
) -> None:
    """All match equally well, so the index may return any of them first."""
    ids = await _save(agent, _COUNT, tags=["even"])
    await _save(agent, 20, tags=["odd"])
    even = {"filter": {"field": "tags", "op": "eq", "value": "even"}}
    async with beside(gateway, search_candidates=10) as narrow:
        for searcher, limit in ((agent, 100), (narrow, 40)):
            pages = await _pages(searcher, limit=limit, **even)
            assert [len(page) for page in pages[:-1]] == [limit] * (_COUNT // limit)
            shown = [id_ for page in pages for id_ in page]
            assert sorted(shown) == sorted(ids)
    async with beside(gateway, qdrant_url=unused_url) as without_index:
        shown = [id_ for page in await _pages(without_index, limit=50, **even) for id_ in page]
        assert sorted(shown) == sorted(ids)


async def test_what_is_saved_between_two_pages_repeats_nothing(agent: Agent) -> None:
    ids = await _save(agent, 6)
    page = await agent.search("lantern", limit=4)
    await agent.save("lantern lantern")
    rest = await agent.search("lantern", limit=4, cursor=page["next_cursor"])
    shown = [memory["id"] for memory in [*page["results"], *rest["results"]]]
    assert len(set(shown)) == len(shown)
    assert set(ids) <= set(shown)
    assert rest["next_cursor"] is None


async def test_pages_end_at_a_limit(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_cursor, "MAX_RESULTS", 8)
    await _save(agent, 12)
    assert [len(page) for page in await _pages(agent, limit=4)] == [4, 4]


async def test_a_cursor_continues_its_own_search_only(gateway: Gateway, agent: Agent) -> None:
    await _save(agent, 3)
    cursor = (await agent.search("lantern", limit=1))["next_cursor"]
    others: list[dict[str, Any]] = [
        {"query": "lanterns"},
        {"tags": ["red"]},
        {"filter": {"field": "tags", "op": "exists", "value": False}},
        {"validity": "any"},
        {"strategy": "mean"},
        {"min_similarity": 0.1},
        {"user_id": "ada"},
        {"query": None},
    ]
    for other in others:
        body = {"query": "lantern", "cursor": cursor} | other
        refused = await agent.request("POST", "/v1/memories/search", json=body, status=_REFUSED)
        assert refused["errors"][0]["field"] == "cursor", other
    async with await gateway.new_client("another-tenant") as client:
        body = {"query": "lantern", "cursor": cursor}
        stranger = Agent(client, "another-tenant")
        await stranger.request("POST", "/v1/memories/search", json=body, status=_REFUSED)
    for bad in ("", "x", "é", cursor[:-4], "A" * 20_000):
        body = {"query": "lantern", "cursor": bad}
        await agent.request("POST", "/v1/memories/search", json=body, status=_REFUSED)
    assert len((await agent.search("lantern", limit=2, cursor=cursor, explain=True))["results"]) == 2


async def test_common_copies_of_own_memories_do_not_end_the_pages(gateway: Gateway, agent: Agent) -> None:
    """They stand beside the own ones, so that half of what the index returns first takes no place."""
    texts = ["lantern" + f" and a long word{number}" * (number + 1) for number in range(_COPIES)]
    for owner in ({"user_id": "ada"}, {}):
        body = {"memories": [{"content": text, "enrich": False, **owner} for text in texts]}
        await agent.request("POST", "/v1/memories/batch", json=body, status=HTTPStatus.CREATED)
    async with beside(gateway, search_candidates=10, search_recent_seconds=0.0) as narrow:
        pages = await _pages(narrow, user_id="ada", limit=6)
    assert [len(page) for page in pages] == [6, 6, _COPIES - 12]
    assert len({id_ for page in pages for id_ in page}) == _COPIES
