"""LT23, SE1: metadata of sessions, what a caller may change of a session, and the filters of the list."""

from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from tests.agent import Agent
from tests.badinput import problem
from tests.conftest import Gateway


async def _open(gateway: Gateway, *, status: int = 201, **fields: Any) -> dict[str, Any]:
    response = await gateway.client.post("/v1/sessions", json=fields)
    assert response.status_code == status, response.text
    return dict(response.json())


async def _patch(gateway: Gateway, session_id: str, *, status: int = 200, **fields: Any) -> dict[str, Any]:
    response = await gateway.client.patch(f"/v1/sessions/{session_id}", json=fields)
    assert response.status_code == status, response.text
    return dict(response.json())


async def _ids(agent: Agent, **query: Any) -> list[str]:
    response = await agent.request("GET", "/v1/sessions", params=query)
    return [session["id"] for session in response["results"]]


async def test_fields_that_are_named_are_replaced_and_the_others_stay(agent: Agent, gateway: Gateway) -> None:
    opened = await _open(gateway, id="trip", ttl_seconds=600, metadata={"topic": "Zug", "n": "1"})
    assert opened["metadata"] == {"topic": "Zug", "n": "1"}
    renamed = await _patch(gateway, "trip", name="to-paris")
    assert renamed == opened | {"name": "to-paris", "expires_at": renamed["expires_at"]}
    changed = await _patch(gateway, "trip", metadata={"topic": "日本"})
    assert (changed["metadata"], changed["name"]) == ({"topic": "日本"}, "to-paris")
    assert await agent.request("GET", "/v1/sessions/trip") == changed
    cleared = await _patch(gateway, "trip", metadata={}, name=None, ttl_seconds=None)
    assert cleared == opened | {"metadata": {}, "name": None, "ttl_seconds": None, "expires_at": None}
    assert await _patch(gateway, "trip") == cleared


async def test_a_change_restarts_the_time_to_live(gateway: Gateway) -> None:
    opened = await _open(gateway, id="trip")
    limited = await _patch(gateway, "trip", ttl_seconds=600)
    expires_at = datetime.fromisoformat(limited["expires_at"])
    opened_at = datetime.fromisoformat(opened["created_at"])
    assert timedelta(seconds=600) <= expires_at - opened_at < timedelta(seconds=660)
    changed = await _patch(gateway, "trip", metadata={"a": "b"})
    assert datetime.fromisoformat(changed["expires_at"]) > expires_at


@pytest.mark.parametrize("kind", ["patrol", "subagent"])
async def test_the_name_that_working_memory_hangs_on_stays(gateway: Gateway, kind: str) -> None:
    await _open(gateway, id="p", kind=kind, name="watch")
    await _open(gateway, id="q", kind=kind)
    for session_id, name in (("p", "other"), ("p", None), ("q", "watch")):
        refused = await _patch(gateway, session_id, status=409, name=name, metadata={"a": "b"})
        assert f"the name of a {kind} can't be changed" in refused["detail"]
    assert (await _patch(gateway, "p", name="watch", metadata={"a": "b"}))["metadata"] == {"a": "b"}


@pytest.mark.parametrize(
    ("fields", "status", "field"),
    [
        ({"metadata": None}, 422, "metadata"),
        ({"metadata": {"a": 1}}, 422, "metadata.a"),
        ({"metadata": {"a": "x" * 1025}}, 413, "metadata.a"),
        ({"metadata": {str(number): "" for number in range(65)}}, 413, "metadata"),
        ({"name": "a b"}, 422, "name"),
        ({"ttl_seconds": 0}, 422, "ttl_seconds"),
        ({"agent_id": "other"}, 422, "agent_id"),
    ],
)
async def test_a_bad_change_is_refused_whole(
    agent: Agent, gateway: Gateway, fields: dict[str, Any], status: int, field: str
) -> None:
    opened = await _open(gateway, id="trip", metadata={"a": "b"})
    response = await gateway.client.patch("/v1/sessions/trip", json={"name": "new"} | fields)
    assert (response.status_code, problem.parse_problem(response)["errors"][0]["field"]) == (status, field)
    assert await agent.request("GET", "/v1/sessions/trip") == opened
    await _patch(gateway, "unknown", status=404, name="n")


async def test_opening_a_session_again_accepts_what_it_does_not_name(gateway: Gateway) -> None:
    await _open(gateway, id="trip", metadata={"a": "b"})
    changed = await _patch(gateway, "trip", metadata={"a": "c"}, name="new", ttl_seconds=600)
    assert await _open(gateway, id="trip") == changed
    assert await _open(gateway, id="trip", metadata={"a": "c"}, name="new", ttl_seconds=600) == changed
    for other in ({"metadata": {"a": "b"}}, {"name": "old"}, {"ttl_seconds": 60}, {"kind": "patrol"}):
        await _open(gateway, id="trip", status=409, **other)


async def test_the_list_is_filtered_and_paged(agent: Agent, gateway: Gateway) -> None:
    sessions = [
        await _open(gateway, id=f"s{number}", user_id="ada", metadata={"topic": topic, "n": str(number)})
        for number, topic in enumerate(["a=b", "a=b", "other", "a=b"])
    ]
    await _open(gateway, id="of-bob", user_id="bob", metadata={"topic": "a=b"})
    topic = {"metadata": "topic=a=b"}
    assert await _ids(agent, **topic) == ["of-bob", "s3", "s1", "s0"]
    assert await _ids(agent, metadata=["topic=a=b", "n=1"]) == ["s1"]
    assert await _ids(agent, metadata="n=") == []
    times = {"created_after": sessions[1]["created_at"], "created_before": sessions[3]["created_at"]}
    assert await _ids(agent, **times) == ["s3", "s2", "s1"]
    assert await _ids(agent, **times, **topic, user_id="ada", kind="session") == ["s3", "s1"]
    assert await _ids(agent, **topic, kind="patrol") == []
    first = await agent.request("GET", "/v1/sessions", params={**topic, "limit": 3})
    rest = await _ids(agent, **topic, cursor=first["next_cursor"])
    assert ([session["id"] for session in first["results"]], rest) == (["of-bob", "s3", "s1"], ["s0"])
    for query in ({"metadata": "topic"}, {"metadata": "=a"}, {"created_after": "9999-01-01T00:00:00Z"}):
        response = await gateway.client.get("/v1/sessions", params=query)
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, next(iter(query)))


def _is(field: str, op: str, *value: Any) -> dict[str, Any]:
    return {"field": field, "op": op} | dict(zip(["value"], value, strict=False))


_LONG = _is("expires_at", "gt", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        (_is("metadata.topic", "prefix", "tra"), {"ada", "watch"}),
        (_is("metadata.stops", "gt", 9), {"watch"}),
        (_is("metadata.topic", "exists", False), {"bare"}),
        (_is("kind", "in", ["patrol", "subagent"]), {"watch"}),
        (_is("id", "ne", "ada"), {"watch", "bare"}),
        (_is("name", "eq", "guard"), {"watch"}),
        (_is("agent_id", "eq", "planner"), {"bare"}),
        (_is("user_id", "exists"), {"ada"}),
        (_is("namespace", "prefix", "session/"), {"ada", "bare"}),
        (_is("store_types", "eq", "tmp"), {"ada"}),
        (_is("last_agent", "eq", "planner"), {"bare"}),
        (_is("created_at", "lt", "2026-01-01T00:00:00Z"), set()),
        (_LONG, {"ada"}),
        (_is("ttl_seconds", "gte", 600), {"ada"}),
        ({"or": [_is("name", "exists"), {"not": _is("metadata.topic", "exists")}]}, {"watch", "bare"}),
    ],
)
async def test_the_list_is_filtered_by_an_expression(
    agent: Agent, gateway: Gateway, expression: dict[str, Any], ids: set[str]
) -> None:
    await _open(
        gateway,
        id="ada",
        user_id="ada",
        ttl_seconds=600,
        store_types=["tmp"],
        metadata={"topic": "travel", "stops": "9"},
    )
    await _open(gateway, id="watch", kind="patrol", name="guard", metadata={"topic": "trains", "stops": "10"})
    await _open(gateway, id="bare", agent_id="planner")
    text = orjson.dumps(expression).decode()
    assert set(await _ids(agent, filter=text)) == ids
    assert set(await _ids(agent, filter=text, user_id="ada")) == ids & {"ada"}


async def test_an_expression_shows_no_session_of_another_user_and_is_paged(
    agent: Agent, gateway: Gateway
) -> None:
    for number in range(5):
        await _open(gateway, id=f"s{number}", user_id="ada" if number % 2 else "bob")
    everything = orjson.dumps(_is("id", "prefix", "s")).decode()
    first = await agent.request("GET", "/v1/sessions", params={"filter": everything, "limit": 3})
    rest = await _ids(agent, filter=everything, cursor=first["next_cursor"])
    assert ([session["id"] for session in first["results"]], rest) == (["s4", "s3", "s2"], ["s1", "s0"])
    async with await gateway.new_client(rights=["read"], user_id="ada") as client:
        shown = (await client.get("/v1/sessions", params={"filter": everything})).json()["results"]
    assert [session["id"] for session in shown] == ["s3", "s1"]


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("{", "filter"),
        ("[]", "filter"),
        ('{"field": "importance", "op": "gt", "value": 0.5}', "filter.field"),
        ('{"field": "kind", "op": "eq", "value": "party"}', "filter.value"),
        ('{"field": "created_at", "op": "gt", "value": "9999-12-31T00:00:00Z"}', "filter.value"),
        (orjson.dumps({"and": [_LONG] * 33}).decode(), "filter.and"),
        (orjson.dumps({"not": {"not": {"not": {"not": {"not": _LONG}}}}}).decode(), "filter.not.not.not.not"),
    ],
)
async def test_a_bad_expression_names_the_part_and_the_rule(
    gateway: Gateway, expression: str, field: str
) -> None:
    response = await gateway.client.get("/v1/sessions", params={"filter": expression})
    assert (response.status_code, problem.parse_problem(response)["errors"][0]["field"]) == (422, field)
