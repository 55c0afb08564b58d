"""LT5, LT15: filters narrow exactly, alone and together, with a query and without, and without the index."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest

from shared.foundation import config
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm import save
from tests.conftest import Gateway, running_gateway
from tests.integration.longterm.conftest import beside
from tests.integration.longterm.test_saving import sql
from tests.journey.agent import Agent

DAY = datetime(2024, 5, 6, 12, 0, 0, 123456, tzinfo=UTC)
ENTRIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "parent": {"category": "project/a"},
    "child": {"category": "project/a/deep", "tags": ["red"]},
    "sibling": {"category": "project/ab", "tags": ["red", "blue"]},
    "underscore": {"category": "project_a", "tags": ["blue", "red", "green"]},
    "case": {"category": "Project/a", "tags": ["Red"]},
    "pairs": {"metadata": {"k": "v", "n": "1"}},
    "pair": {"metadata": {"k": "v"}},
    "other pair": {"metadata": {"k": "w", "v": "k"}},
    "early": {"occurred_at": (DAY - timedelta(microseconds=1)).isoformat()},
    "on the day": {"occurred_at": DAY.isoformat()},
    "late": {"occurred_at": (DAY + timedelta(microseconds=1)).isoformat(), "tags": ["red"]},
}
BEFORE, AFTER = {"occurred_before": DAY.isoformat()}, {"occurred_after": DAY.isoformat()}
FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {*ENTRIES}),
    ({"category": "project"}, {"parent", "child", "sibling"}),
    ({"category": "project/a"}, {"parent", "child"}),
    ({"category": "project/a/deep"}, {"child"}),
    ({"category": "project/a/de"}, set()),
    ({"category": "project/ab"}, {"sibling"}),
    ({"category": "project_a"}, {"underscore"}),
    ({"tags": ["red"]}, {"child", "sibling", "underscore", "late"}),
    ({"tags": ["red", "blue"]}, {"sibling", "underscore"}),
    ({"tags": ["blue", "red", "green"]}, {"underscore"}),
    ({"tags": ["red", "none"]}, set()),
    ({"metadata": {"k": "v"}}, {"pairs", "pair"}),
    ({"metadata": {"k": "v", "n": "1"}}, {"pairs"}),
    ({"metadata": {"v": "k"}}, {"other pair"}),
    ({"metadata": {"k": ""}}, set()),
    (BEFORE, {"early", "on the day"}),
    (AFTER, {"on the day", "late"}),
    (BEFORE | AFTER, {"on the day"}),
    (AFTER | {"tags": ["red"]}, {"late"}),
    ({"category": "project", "tags": ["red", "blue"]}, {"sibling"}),
    ({"category": "project", "metadata": {"k": "v"}}, set()),
    ({"state": "final"}, {*ENTRIES}),
    ({"state": "archived"}, {"archived"}),
    ({"state": "pending"}, set()),
    ({"user_id": "nobody-else"}, {*ENTRIES}),
    ({"agent_id": "nobody-else"}, set()),
]


@pytest.fixture(scope="module")
async def filled(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """A tenant with an entry for every filter to find, and one that is archived."""
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        agent = Agent(gateway.client, gateway.tenant)
        for name, fields in ENTRIES.items():
            await agent.save(f"word {name}", **fields)
        raw, other = await agent.save("word archived"), await agent.save("word of somebody", user_id="u")
        await agent.request("DELETE", f"/v1/memories/{other['id']}")
        deleted = (
            "UPDATE memory SET state = 'archived', archived_at = now(), version = version + 1 WHERE id = :id"
        )
        await sql(gateway, deleted, id=raw["id"])
        await agent.request("GET", f"/v1/memories/{raw['id']}")
        await _index_anew(gateway, raw["id"])
        yield gateway


async def _index_anew(gateway: Gateway, entry_id: str) -> None:
    """Write the point of an entry that was changed by SQL."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as connection:
        rows = await memory_queries.read(connection, gateway.tenant, [entry_id])
        claims = await save.enqueue_jobs(connection, gateway.tenant, rows)
    await gateway.resources.index_writer.write_through(
        [memory_document.document(row) for row in rows], claims
    )


def names(entries: list[dict[str, Any]]) -> set[str]:
    return {memory["content"].removeprefix("word ") for memory in entries}


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
async def test_a_search_with_a_query_keeps_to_its_filters(
    filled: Gateway, filters: dict[str, Any], expected: set[str]
) -> None:
    answer = await Agent(filled.client, filled.tenant).search("word", limit=50, **filters)
    assert answer["degraded"] == []
    assert names(answer["results"]) == expected


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
async def test_a_search_without_a_query_keeps_to_its_filters(
    filled: Gateway, filters: dict[str, Any], expected: set[str]
) -> None:
    answer = await Agent(filled.client, filled.tenant).search("", limit=50, **filters)
    assert (answer["stages"], names(answer["results"])) == (["newest"], expected)


async def test_without_the_index_the_filters_hold_as_well(filled: Gateway, unused_url: str) -> None:
    """IX4."""
    async with beside(filled, qdrant_url=f"http://{unused_url}") as agent:
        for filters, expected in FILTERS:
            answer = await agent.search("word", limit=50, **filters)
            assert answer["degraded"] == ["index"]
            assert names(answer["results"]) == expected, filters


async def test_created_ranges_are_inclusive_to_the_microsecond(agent: Agent) -> None:
    moments = [(await agent.save(f"word {n}"))["created_at"] for n in range(5)]
    for query in ("word", ""):
        between = {"created_after": moments[1], "created_before": moments[3]}
        assert names((await agent.search(query, **between))["results"]) == {"1", "2", "3"}
        exactly = {"created_after": moments[2], "created_before": moments[2]}
        assert names((await agent.search(query, **exactly))["results"]) == {"2"}
    listed = await agent.request("GET", "/v1/memories", params={"created_after": moments[4]})
    assert names(listed["results"]) == {"4"}


async def test_twenty_are_answered_unless_a_limit_is_set(agent: Agent) -> None:
    memories = [{"content": f"word {n}"} for n in range(30)]
    await agent.request("POST", "/v1/memories/batch", json={"memories": memories}, status=HTTPStatus.CREATED)
    for query in ("word", ""):
        assert len((await agent.search(query))["results"]) == 20
        assert len((await agent.search(query, limit=3))["results"]) == 3
        assert len((await agent.search(query, limit=100))["results"]) == 30
    body = {"query": "word", "limit": 101}
    await agent.request("POST", "/v1/memories/search", json=body, status=HTTPStatus.UNPROCESSABLE_ENTITY)


async def test_without_a_query_the_last_seen_come_first(agent: Agent) -> None:
    for n in range(4):
        await agent.save(f"word {n}")
    await agent.save("word 1")
    assert [memory["content"] for memory in (await agent.search(""))["results"]] == [
        "word 1",
        "word 3",
        "word 2",
        "word 0",
    ]


async def pages(agent: Agent, **params: Any) -> list[list[dict[str, Any]]]:
    found, cursor = [], None
    while True:
        more: dict[str, Any] = {"cursor": cursor} if cursor else {}
        page = await agent.request("GET", "/v1/memories", params=params | more)
        found.append(page["results"])
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def test_pages_are_stable_and_complete_when_all_were_seen_at_the_same_moment(
    agent: Agent, gateway: Gateway
) -> None:
    memories = [{"content": f"word {n}", "tags": ["even"] if n % 2 == 0 else []} for n in range(23)]
    await agent.request("POST", "/v1/memories/batch", json={"memories": memories}, status=HTTPStatus.CREATED)
    await sql(gateway, "UPDATE memory SET last_seen_at = '2024-01-01T00:00:00.000001Z'")
    found = await pages(agent, limit=5)
    assert [len(page) for page in found] == [5, 5, 5, 5, 3]
    ids = [memory["id"] for page in found for memory in page]
    assert ids == sorted(set(ids))
    assert len(ids) == 23
    even = await pages(agent, limit=4, tag="even")
    assert [len(page) for page in even] == [4, 4, 4]


async def test_pages_neither_repeat_nor_lose_what_was_there_while_others_are_saved(agent: Agent) -> None:
    first = [(await agent.save(f"word {n}"))["id"] for n in range(6)]
    page = await agent.request("GET", "/v1/memories", params={"limit": 3})
    await agent.save("word of a latecomer")
    rest = await agent.request("GET", "/v1/memories", params={"limit": 10, "cursor": page["next_cursor"]})
    assert [memory["id"] for memory in page["results"] + rest["results"]] == first[::-1]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize("cursor", ["x", "", "bm9wZQ==", "é", "MjAyNCAx", "a" * 5000])
async def test_a_foreign_cursor_is_refused(agent: Agent, cursor: str) -> None:
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    await agent.request("GET", "/v1/memories", params={"cursor": cursor}, status=status)


@pytest.mark.parametrize("path", ["/v1/memories", "/v1/memories/search"])
async def test_a_filter_that_is_no_category_is_refused(agent: Agent, path: str) -> None:
    for category in ("../x", "/abs", " ", "a/"):
        more: dict[str, Any] = {"params" if path.endswith("s") else "json": {"category": category}}
        method = "GET" if path.endswith("s") else "POST"
        problem = await agent.request(method, path, status=HTTPStatus.UNPROCESSABLE_ENTITY, **more)
        assert problem["errors"][0]["field"] == "category"


async def test_categories_are_a_tree_with_counts_and_tags_are_counted(filled: Gateway) -> None:
    """LT15."""
    agent = Agent(filled.client, filled.tenant)
    payload = (await agent.request("GET", "/v1/memories/categories"))["results"]
    assert {memory["category"]: (memory["count"], memory["total"]) for memory in payload} == {
        "Project": (0, 1),
        "Project/a": (1, 1),
        "project": (0, 3),
        "project/a": (1, 2),
        "project/a/deep": (1, 1),
        "project/ab": (1, 1),
        "project_a": (1, 1),
    }
    assert [memory["category"] for memory in payload] == sorted(memory["category"] for memory in payload)
    tags = (await agent.request("GET", "/v1/memories/tags"))["results"]
    assert {memory["tag"]: memory["count"] for memory in tags} == {"Red": 1, "blue": 2, "green": 1, "red": 4}
    assert {*[memory["tag"] for memory in tags]} == {"Red", "blue", "green", "red"}


async def test_memories_of_a_user_are_seen_with_that_user_only(agent: Agent) -> None:
    """Scope: common entries and one's own, never another user's."""
    for name, fields in {
        "common": {},
        "of u": {"user_id": "u"},
        "of v": {"user_id": "v"},
        "of b": {"agent_id": "b"},
        "of b's u": {"agent_id": "b", "user_id": "u"},
    }.items():
        await agent.save(f"word {name}", **fields)
    for query in ("word", ""):
        for asked, expected in [
            ({}, {"common"}),
            ({"user_id": "u"}, {"common", "of u"}),
            ({"user_id": "v"}, {"common", "of v"}),
            ({"user_id": "w"}, {"common"}),
            ({"agent_id": "b"}, {"of b"}),
            ({"agent_id": "b", "user_id": "u"}, {"of b", "of b's u"}),
        ]:
            assert names((await agent.search(query, **asked))["results"]) == expected
