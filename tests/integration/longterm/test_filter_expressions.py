"""LT20: filter expressions mean the same in Postgres, in the index and in plain Python."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from random import Random
from typing import Any
from uuid import uuid4

import orjson
import pytest

from shared.foundation import config
from shared.foundation.filter_expression import parse
from shared.foundation.stages import RecordKind
from shared.memory.longterm import index_filter
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filter_fields import FIELDS
from shared.search.index import filters as index_filters
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.integration.longterm.changed_rows import change_columns
from tests.integration.longterm.filter_reference import (
    STATES,
    Json,
    random_columns,
    random_expression,
    random_memory,
    selects,
)
from tests.long_form import in_long_form
from tests.second_gateway import beside

_MEMORIES, _EXPRESSIONS, _SEED = 80, in_long_form(120, otherwise=40), 12


@pytest.fixture(scope="module")
async def filled(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """Serve random memories at a gateway that reads ten hits per channel, so that every search must widen."""
    settings = make_settings(search_candidates=10, search_recent_seconds=0.0)
    async with running_gateway(settings, f"t-{uuid4().hex[:12]}") as gateway:
        agent, random = Agent(gateway.client, gateway.tenant), Random(_SEED)
        bodies = [random_memory(random, number) for number in range(_MEMORIES)]
        saved = await agent.request(
            "POST", "/v1/memories/batch", json={"memories": bodies}, status=HTTPStatus.CREATED
        )
        ids = [memory["id"] for memory in saved["results"]]
        await change_columns(gateway, {ids[n]: random_columns(random, n) for n in range(_MEMORIES)})
        yield gateway


def _as_text(expression: Any) -> str:
    return orjson.dumps(expression).decode()


async def _list_ids(agent: Agent, expression: Json) -> set[str]:
    params = {"filter": _as_text(expression), "validity": "any", "limit": "100"}
    return {memory["id"] for memory in (await agent.request("GET", "/v1/memories", params=params))["results"]}


async def _search_ids(agent: Agent, expression: Json) -> set[str]:
    found = await agent.search("word", filter=expression, validity="any", limit=100)
    return {memory["id"] for memory in found["results"]}


async def _point_ids(gateway: Gateway, expression: Json) -> set[str] | None:
    """Return the records whose points the index lets through, or None if it is not asked."""
    condition = index_filter.to_index(parse(expression, FIELDS))
    if condition is None:
        return None
    generation = await gateway.resources.search_index.live(RecordKind.MEMORY)
    point_filter = index_filters.all_of([*index_filters.tenant_condition(gateway.tenant), condition])
    body = {"filter": point_filter, "limit": 1000, "with_payload": ["record_id"]}
    path = f"collections/{generation.collection}/points/scroll"
    found = await gateway.resources.qdrant.call("POST", path, body)
    return {point["payload"]["record_id"] for point in found["points"]}


async def test_postgres_the_index_and_plain_python_agree_on_random_expressions(
    filled: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, random = Agent(filled.client, filled.tenant), Random(_SEED)
    everything = {"or": [_condition("state", "in", [*STATES])]}
    params = {"filter": _as_text(everything), "validity": "any", "limit": "100"}
    memories = (await agent.request("GET", "/v1/memories", params=params))["results"]
    assert len(memories) == _MEMORIES
    narrowed = selective = 0
    for number in range(_EXPRESSIONS):
        expression = random_expression(random)
        expected = {memory["id"] for memory in memories if selects(expression, memory)}
        # Every other search is not told the ids of what can match, and must widen until it has all.
        monkeypatch.setattr(memory_search, "_MAX_RARE", 1000 if number % 2 else -1)
        assert await _list_ids(agent, expression) == expected, expression
        assert await _search_ids(agent, expression) == expected, expression
        points = await _point_ids(filled, expression)
        if points is not None:
            assert points >= expected, expression
            narrowed += len(points) < _MEMORIES
        selective += 0 < len(expected) < _MEMORIES
    assert narrowed > _EXPRESSIONS / 4, "the index is hardly asked for anything"
    assert selective > _EXPRESSIONS / 2, "the expressions select all or nothing"


async def test_without_the_index_an_expression_selects_the_same(filled: Gateway, unused_url: str) -> None:
    random = Random(_SEED + 1)
    agent = Agent(filled.client, filled.tenant)
    async with beside(filled, qdrant_url=unused_url) as second:
        for _ in range(10):
            expression = random_expression(random)
            assert await _search_ids(second, expression) == await _search_ids(agent, expression), expression


def _condition(field: str, op: str, value: Any) -> Json:
    return {"field": field, "op": op, "value": value}


async def test_a_filter_that_the_index_does_not_know_finds_what_is_below_the_first_hits(
    filled: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best hits are cut off only after the filter was applied."""
    agent = Agent(filled.client, filled.tenant)
    scope = {"agent_id": "deep"}
    better = [{"content": f"lantern lantern {number}", "importance": 0.9, **scope} for number in range(30)]
    worse = {"content": "A lantern and many other words about the harbour.", "importance": 0.2, **scope}
    await agent.request(
        "POST", "/v1/memories/batch", json={"memories": [*better, worse]}, status=HTTPStatus.CREATED
    )
    for max_rare in (1000, -1):
        monkeypatch.setattr(memory_search, "_MAX_RARE", max_rare)
        unimportant = _condition("importance", "lt", 0.3)
        found = await agent.search_contents("lantern", filter=unimportant, limit=5, **scope)
        assert found == [worse["content"]]


async def test_a_refused_filter_names_its_part_in_a_body_and_in_a_query(filled: Gateway) -> None:
    agent = Agent(filled.client, filled.tenant)
    bad = {"and": [_condition("tags", "eq", "red"), {"not": _condition("created_at", "gt", 5)}]}
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    refusals = [
        await agent.request("POST", "/v1/memories/search", json={"filter": bad}, status=status),
        await agent.request("GET", "/v1/memories", params={"filter": _as_text(bad)}, status=status),
    ]
    for refusal in refusals:
        assert refusal["errors"][0]["field"] == "filter.and.1.not.value"
    refused = await agent.request("GET", "/v1/memories", params={"filter": "{"}, status=status)
    assert refused["errors"] == [{"field": "filter", "rule": "must be JSON"}]
