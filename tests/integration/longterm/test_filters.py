"""LT5, LT15: filters select exactly, alone or combined, with or without a query, and without Qdrant."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest

from shared.foundation import config
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm import save
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.second_gateway import beside
from tests.sql import sql

DAY = datetime(2024, 5, 6, 12, 0, 0, 123456, tzinfo=UTC)
MEMORIES: dict[str, dict[str, Any]] = {
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
    ({}, {*MEMORIES}),
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
    ({"state": "final"}, {*MEMORIES}),
    ({"state": "archived"}, {"archived"}),
    ({"state": "pending"}, set()),
    ({"user_id": "nobody-else"}, {*MEMORIES}),
    ({"agent_id": "nobody-else"}, set()),
]


@pytest.fixture(scope="module")
async def gateway_with_memories(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """Yield the gateway of a tenant with memories that match each filter, one of them archived."""
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        agent = Agent(gateway.client, gateway.tenant)
        for name, fields in MEMORIES.items():
            await agent.save(f"word {name}", **fields)
        archived, other = await agent.save("word archived"), await agent.save("word of somebody", user_id="u")
        await agent.request("DELETE", f"/v1/memories/{other['id']}")
        archive_statement = (
            "UPDATE memory SET state = 'archived', archived_at = now(), version = version + 1 WHERE id = :id"
        )
        await sql(gateway, archive_statement, id=archived["id"])
        await agent.request("GET", f"/v1/memories/{archived['id']}")
        await _reindex(gateway, archived["id"])
        yield gateway


async def _reindex(gateway: Gateway, memory_id: str) -> None:
    """Write the point of a memory that was changed with SQL."""
    async with gateway.resources.transaction(gateway.tenant) as tx:
        await save.index(tx, await memory_queries.read(tx, [memory_id]))


def names(memories: list[dict[str, Any]]) -> set[str]:
    return {memory["content"].removeprefix("word ") for memory in memories}


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
async def test_a_search_with_a_query_applies_its_filters(
    gateway_with_memories: Gateway, filters: dict[str, Any], expected: set[str]
) -> None:
    response = await Agent(gateway_with_memories.client, gateway_with_memories.tenant).search(
        "word", limit=50, **filters
    )
    assert response["degraded"] == []
    assert names(response["results"]) == expected


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
async def test_a_search_without_a_query_applies_its_filters(
    gateway_with_memories: Gateway, filters: dict[str, Any], expected: set[str]
) -> None:
    response = await Agent(gateway_with_memories.client, gateway_with_memories.tenant).search(
        "", limit=50, **filters
    )
    assert (response["stages"], names(response["results"])) == (["newest"], expected)


async def test_a_search_without_the_index_applies_the_same_filters(
    gateway_with_memories: Gateway, unused_url: str
) -> None:
    """IX4: Postgres is searched instead."""
    async with beside(gateway_with_memories, qdrant_url=unused_url) as agent:
        for filters, expected in FILTERS:
            response = await agent.search("word", limit=50, **filters)
            assert response["degraded"] == ["index"]
            assert names(response["results"]) == expected, filters


async def test_created_ranges_are_inclusive_to_the_microsecond(agent: Agent) -> None:
    created_times = [(await agent.save(f"word {n}"))["created_at"] for n in range(5)]
    for query in ("word", ""):
        inclusive_range = {"created_after": created_times[1], "created_before": created_times[3]}
        assert names((await agent.search(query, **inclusive_range))["results"]) == {"1", "2", "3"}
        single_moment = {"created_after": created_times[2], "created_before": created_times[2]}
        assert names((await agent.search(query, **single_moment))["results"]) == {"2"}
    first_page = await agent.request("GET", "/v1/memories", params={"created_after": created_times[4]})
    assert names(first_page["results"]) == {"4"}


async def test_a_search_returns_twenty_results_unless_a_limit_is_set(agent: Agent) -> None:
    memories = [{"content": f"word {n}"} for n in range(30)]
    await agent.request("POST", "/v1/memories/batch", json={"memories": memories}, status=HTTPStatus.CREATED)
    for query in ("word", ""):
        assert len((await agent.search(query))["results"]) == 20
        assert len((await agent.search(query, limit=3))["results"]) == 3
        assert len((await agent.search(query, limit=100))["results"]) == 30
    body = {"query": "word", "limit": 101}
    await agent.request("POST", "/v1/memories/search", json=body, status=HTTPStatus.UNPROCESSABLE_ENTITY)


async def test_without_a_query_the_memories_seen_last_come_first(agent: Agent) -> None:
    for n in range(4):
        await agent.save(f"word {n}")
    await agent.save("word 1")
    assert [memory["content"] for memory in (await agent.search(""))["results"]] == [
        "word 1",
        "word 3",
        "word 2",
        "word 0",
    ]


async def list_pages(agent: Agent, **params: Any) -> list[list[dict[str, Any]]]:
    pages, cursor = [], None
    while True:
        cursor_param: dict[str, Any] = {"cursor": cursor} if cursor else {}
        page = await agent.request("GET", "/v1/memories", params=params | cursor_param)
        pages.append(page["results"])
        cursor = page["next_cursor"]
        if cursor is None:
            return pages


async def test_pages_are_stable_and_complete_when_all_were_seen_at_the_same_moment(
    agent: Agent, gateway: Gateway
) -> None:
    memories = [{"content": f"word {n}", "tags": ["even"] if n % 2 == 0 else []} for n in range(23)]
    await agent.request("POST", "/v1/memories/batch", json={"memories": memories}, status=HTTPStatus.CREATED)
    await sql(gateway, "UPDATE memory SET last_seen_at = '2024-01-01T00:00:00.000001Z'")
    pages = await list_pages(agent, limit=5)
    assert [len(page) for page in pages] == [5, 5, 5, 5, 3]
    ids = [memory["id"] for page in pages for memory in page]
    assert ids == sorted(set(ids))
    assert len(ids) == 23
    even_pages = await list_pages(agent, limit=4, tag="even")
    assert [len(page) for page in even_pages] == [4, 4, 4]


async def test_a_save_between_two_pages_neither_repeats_nor_hides_memories(agent: Agent) -> None:
    saved_ids = [(await agent.save(f"word {n}"))["id"] for n in range(6)]
    page = await agent.request("GET", "/v1/memories", params={"limit": 3})
    await agent.save("word of a latecomer")
    next_page = await agent.request(
        "GET", "/v1/memories", params={"limit": 10, "cursor": page["next_cursor"]}
    )
    assert [memory["id"] for memory in page["results"] + next_page["results"]] == saved_ids[::-1]
    assert next_page["next_cursor"] is None


_COLOURED = {"metadata": {"colour": "red"}, "occurred_after": "2024-01-02T00:00:00Z"}
_COLOURED_PARAMS = {"metadata": "colour=red", "occurred_after": "2024-01-02T00:00:00Z"}


async def test_filters_by_metadata_and_time_of_the_event_are_paged(agent: Agent) -> None:
    for number in range(12):
        colour, day = ("red", "blue")[number % 2], 1 + number // 4
        fields = {"metadata": {"colour": colour}, "occurred_at": f"2024-01-0{day}T00:00:00Z"}
        await agent.save(f"fact {number}", **fields)
    expected = ["fact 10", "fact 8", "fact 6", "fact 4"]
    options: dict[str, Any]
    for method, path, argument in (
        ("POST", "/v1/memories/search", "json"),
        ("GET", "/v1/memories", "params"),
    ):
        filters = _COLOURED if argument == "json" else _COLOURED_PARAMS
        contents: list[str] = []
        cursor: dict[str, Any] = {}
        for _page in range(4):
            options = {argument: {**filters, "limit": 3, **cursor}}
            page = await agent.request(method, path, **options)
            contents += [memory["content"] for memory in page["results"]]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert contents == expected, method


async def test_a_search_with_a_query_takes_no_cursor_and_a_metadata_pair_needs_a_name(agent: Agent) -> None:
    await agent.save("one")
    await agent.save("two")
    page = await agent.request("POST", "/v1/memories/search", json={"limit": 1})
    body = {"query": "one", "cursor": page["next_cursor"]}
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    refused = await agent.request("POST", "/v1/memories/search", json=body, status=status)
    assert refused["errors"][0]["field"] == "cursor"
    for pair in ("colour", "=red"):
        refused = await agent.request("GET", "/v1/memories", params={"metadata": pair}, status=status)
        assert refused["errors"][0]["field"] == "metadata"


@pytest.mark.parametrize("cursor", ["x", "", "bm9wZQ==", "é", "MjAyNCAx", "a" * 5000])
async def test_a_cursor_that_loci_did_not_issue_is_refused(agent: Agent, cursor: str) -> None:
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    await agent.request("GET", "/v1/memories", params={"cursor": cursor}, status=status)


@pytest.mark.parametrize("path", ["/v1/memories", "/v1/memories/search"])
async def test_an_invalid_category_filter_is_refused(agent: Agent, path: str) -> None:
    for category in ("../x", "/abs", " ", "a/"):
        arguments: dict[str, Any] = {"params" if path.endswith("s") else "json": {"category": category}}
        method = "GET" if path.endswith("s") else "POST"
        problem = await agent.request(method, path, status=HTTPStatus.UNPROCESSABLE_ENTITY, **arguments)
        assert problem["errors"][0]["field"] == "category"


async def test_categories_are_a_tree_with_counts_and_tags_are_counted(gateway_with_memories: Gateway) -> None:
    """LT15: `count` is of the category itself, `total` includes its subcategories."""
    agent = Agent(gateway_with_memories.client, gateway_with_memories.tenant)
    categories = (await agent.request("GET", "/v1/memories/categories"))["results"]
    assert {node["category"]: (node["count"], node["total"]) for node in categories} == {
        "Project": (0, 1),
        "Project/a": (1, 1),
        "project": (0, 3),
        "project/a": (1, 2),
        "project/a/deep": (1, 1),
        "project/ab": (1, 1),
        "project_a": (1, 1),
    }
    assert [node["category"] for node in categories] == sorted(node["category"] for node in categories)
    tags = (await agent.request("GET", "/v1/memories/tags"))["results"]
    assert {tag["tag"]: tag["count"] for tag in tags} == {"Red": 1, "blue": 2, "green": 1, "red": 4}
    assert {*[tag["tag"] for tag in tags]} == {"Red", "blue", "green", "red"}


async def test_memories_of_a_user_are_found_with_that_user_only(agent: Agent) -> None:
    """A user finds common memories and their own, never those of another user."""
    for name, fields in {
        "common": {},
        "of u": {"user_id": "u"},
        "of v": {"user_id": "v"},
        "of b": {"agent_id": "b"},
        "of b's u": {"agent_id": "b", "user_id": "u"},
    }.items():
        await agent.save(f"word {name}", **fields)
    for query in ("word", ""):
        for scope, expected in [
            ({}, {"common"}),
            ({"user_id": "u"}, {"common", "of u"}),
            ({"user_id": "v"}, {"common", "of v"}),
            ({"user_id": "w"}, {"common"}),
            ({"agent_id": "b"}, {"of b"}),
            ({"agent_id": "b", "user_id": "u"}, {"of b", "of b's u"}),
        ]:
            assert names((await agent.search(query, **scope))["results"]) == expected
