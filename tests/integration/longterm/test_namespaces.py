"""LT17: namespaces are listed by whole segments of prefix and suffix, and by depth."""

from http import HTTPStatus
from typing import Any

import pytest

from tests.agent import Agent, Json

NAMES = ["a", "a/b", "a/b/c", "a/bc", "b/x/c", "x/b/c", "a_b/c"]


@pytest.fixture
async def filled(keeper: Agent, scope: dict[str, str]) -> dict[str, str]:
    """Return a scope with a memory in each of some namespaces, two in one, and one in none."""
    items = [{"content": f"in {name}", "namespace": name, "key": "k", **scope} for name in NAMES]
    items += [{"content": "another", "namespace": "a/b", "key": "k2", **scope}]
    items += [{"content": "in none", "key": "k", **scope}, {"content": "without a key", **scope}]
    common = {"content": "common", "namespace": "common", "key": "k", "agent_id": scope["agent_id"]}
    await keeper.request(
        "POST", "/v1/memories/batch", json={"memories": [*items, common]}, status=HTTPStatus.CREATED
    )
    return scope


async def listed(agent: Agent, scope: dict[str, str], **query: Any) -> list[tuple[str, int]]:
    page: Json = await agent.request("GET", "/v1/namespaces", params={**scope, **query})
    assert page["next_cursor"] is None
    return [(row["namespace"], row["count"]) for row in page["results"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["", "a", "a/b", "a/b/c", "a/bc", "a_b/c", "b/x/c", "x/b/c"]),
        ({"prefix": "a"}, ["a", "a/b", "a/b/c", "a/bc"]),
        ({"prefix": "a/b"}, ["a/b", "a/b/c"]),
        ({"prefix": "*/b"}, ["a/b", "a/b/c", "x/b/c"]),
        ({"suffix": "c"}, ["a/b/c", "a_b/c", "b/x/c", "x/b/c"]),
        ({"suffix": "b/*"}, ["a/b/c", "x/b/c"]),
        ({"prefix": "a", "suffix": "b/c"}, ["a/b/c"]),
        ({"max_depth": 1}, ["", "a", "a_b", "b", "x"]),
        ({"prefix": "a/b", "max_depth": 2}, ["a/b"]),
        ({"prefix": "a/b/c/d"}, []),
    ],
)
async def test_namespaces_match_by_whole_segments(
    keeper: Agent, filled: dict[str, str], query: Any, expected: list[str]
) -> None:
    assert [name for name, _ in await listed(keeper, filled, **query)] == expected


async def test_namespaces_are_counted_paged_and_empty_once_their_memories_are_gone(
    keeper: Agent, filled: dict[str, str]
) -> None:
    assert dict(await listed(keeper, filled, max_depth=1)) == {"": 1, "a": 5, "a_b": 1, "b": 1, "x": 1}
    names: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        query = {**filled, "limit": 3, **cursor}
        page = await keeper.request("GET", "/v1/namespaces", params=query)
        names += [row["namespace"] for row in page["results"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert names == ["", "a", "a/b", "a/b/c", "a/bc", "a_b/c", "b/x/c", "x/b/c"]
    query = {"key": "k", "namespace": "a/bc", **filled}
    await keeper.request("DELETE", "/v1/memories/by-key", params=query)
    assert "a/bc" not in dict(await listed(keeper, filled))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prefix", "/a"),
        ("prefix", "a//b"),
        ("prefix", "a*"),
        ("suffix", "a/../b"),
        ("suffix", "a.*"),
        ("max_depth", "0"),
        ("cursor", "bm9uZQ=="),
    ],
)
async def test_bad_patterns_and_foreign_cursors_are_refused(
    keeper: Agent, scope: dict[str, str], field: str, value: str
) -> None:
    query = {field: value, **scope}
    problem = await keeper.request(
        "GET", "/v1/namespaces", params=query, status=HTTPStatus.UNPROCESSABLE_ENTITY
    )
    assert [violation["field"] for violation in problem["errors"]] == [field]
