"""LT18: what is not yet or no longer valid is left out unless it is asked for; what has expired, always."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from shared.foundation import config
from shared.foundation.scope import Scope
from shared.memory.longterm import scope_queries
from tests.agent import Agent, count_occurrences, wait_until
from tests.conftest import Gateway, running_gateway
from tests.integration.longterm.changed_rows import change_columns
from tests.second_gateway import beside

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
TIMES: dict[str, dict[str, datetime]] = {
    "open": {},
    "begun": {"valid_from": NOW - DAY},
    "ending": {"valid_until": NOW + DAY, "valid_from": NOW - 9 * DAY},
    "closed": {"valid_from": NOW - 3 * DAY, "valid_until": NOW - DAY},
    "coming": {"valid_from": NOW + DAY},
    "expiring": {"expires_at": NOW + DAY},
    "expired": {"expires_at": NOW - timedelta(seconds=1)},
}
VALID = {"open", "begun", "ending", "expiring"}
ANY = {*TIMES} - {"expired"}
AS_OF: list[tuple[dict[str, Any], set[str]]] = [
    ({}, VALID),
    ({"validity": "any"}, ANY),
    ({"as_of": (NOW - 2 * DAY).isoformat()}, {"open", "ending", "closed", "expiring"}),
    # Half-open: the beginning belongs to it, the end does not.
    ({"as_of": (NOW - 3 * DAY).isoformat()}, {"open", "ending", "closed", "expiring"}),
    ({"as_of": (NOW - 3 * DAY - timedelta(microseconds=1)).isoformat()}, {"open", "ending", "expiring"}),
    ({"as_of": (NOW - DAY).isoformat()}, VALID),
    ({"as_of": (NOW + DAY).isoformat()}, {"open", "begun", "coming", "expiring"}),
    ({"as_of": "9999-12-31T23:59:59-12:00"}, {"open", "begun", "coming", "expiring"}),
    ({"as_of": "0001-01-01T00:00:00+12:00"}, {"open", "expiring"}),
]


@pytest.fixture(scope="module")
async def filled(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """Serve one memory for each kind of validity."""
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        agent = Agent(gateway.client, gateway.tenant)
        ids = {
            name: (await agent.save(f"lantern {name}", category=f"lights/{name}", tags=[name]))["id"]
            for name in TIMES
        }
        await change_columns(gateway, {ids[name]: dict(times) for name, times in TIMES.items()})
        yield gateway


def _names(memories: list[dict[str, Any]]) -> set[str]:
    return {memory["content"].removeprefix("lantern ") for memory in memories}


@pytest.mark.parametrize(("asked", "expected"), AS_OF)
async def test_lists_and_searches_show_what_is_valid_at_a_time(
    filled: Gateway, asked: dict[str, Any], expected: set[str]
) -> None:
    agent = Agent(filled.client, filled.tenant)
    assert _names((await agent.search("lantern", **asked))["results"]) == expected
    assert _names((await agent.search("", **asked))["results"]) == expected
    assert _names((await agent.request("GET", "/v1/memories", params=asked))["results"]) == expected


async def test_without_the_index_the_same_is_shown(filled: Gateway, unused_url: str) -> None:
    async with beside(filled, qdrant_url=unused_url) as agent:
        for asked, expected in AS_OF:
            assert _names((await agent.search("lantern", **asked))["results"]) == expected, asked


async def test_counts_contexts_and_dreams_show_only_what_is_valid_now(filled: Gateway) -> None:
    agent = Agent(filled.client, filled.tenant)
    tags = (await agent.request("GET", "/v1/memories/tags"))["results"]
    assert {tag["tag"] for tag in tags} == VALID
    categories = (await agent.request("GET", "/v1/memories/categories"))["results"]
    assert {node["category"] for node in categories} == {"lights", *(f"lights/{name}" for name in VALID)}
    recalled = await agent.context(await agent.session(), "Where is the lantern?")
    newest = await agent.context(await agent.session(), "Qqq?")
    for context in (recalled, newest):
        assert _names(context["recalled"]) <= VALID
        assert not [name for name in {*TIMES} - VALID if count_occurrences(context, f"lantern {name}")]
    async with filled.resources.postgres.for_tenant(filled.tenant) as tx:
        shown = await scope_queries.list_scope(tx, Scope(filled.tenant))
        exported = await scope_queries.list_page(tx, Scope(filled.tenant), "", 100)
    assert _names([memory.model_dump() for memory in shown]) == VALID
    assert _names([memory.model_dump() for memory in exported]) == ANY


async def test_a_memory_is_found_by_itself_when_its_time_comes(gateway: Gateway, agent: Agent) -> None:
    memory = await agent.save("lantern of tomorrow")
    begins = datetime.now(UTC) + timedelta(seconds=2)
    await change_columns(gateway, {memory["id"]: {"valid_from": begins}})
    assert await agent.search_contents("lantern") == []

    async def is_found() -> bool:
        return await agent.search_contents("lantern") == ["lantern of tomorrow"]

    await wait_until(is_found, within=10)
    assert datetime.now(UTC) >= begins


async def test_a_time_and_any_validity_exclude_each_other(agent: Agent) -> None:
    body = {"as_of": NOW.isoformat(), "validity": "any"}
    for method, path, argument in (
        ("GET", "/v1/memories", "params"),
        ("POST", "/v1/memories/search", "json"),
    ):
        more: dict[str, Any] = {argument: body}
        refused = await agent.request(method, path, status=422, **more)
        assert refused["errors"][0]["field"] == "as_of"
