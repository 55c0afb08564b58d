"""Every route with every kind of binding, on records that are own, common, foreign or of a like name.

The routes come from the OpenAPI document, and what is expected from `rights_table.py`. All keys have all
rights: `admin` widens no binding.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from shared.foundation import config
from tests.conftest import Gateway, running_gateway
from tests.isolation.asking import send
from tests.isolation.cases import Call
from tests.isolation.rights_cases import (
    ERASURES,
    LISTS,
    RECORDS,
    SCOPES,
    WITHOUT_KEY,
    WORKING_AREAS,
    WORKING_LISTS,
    RecordCase,
    scope_call,
)
from tests.isolation.rights_table import KEYS, OTHER_USER, OWNERS, USER, may
from tests.isolation.rights_world import World, new_name

each_key = pytest.mark.parametrize("key", KEYS)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def world(gateway: Gateway) -> World:
    return World(gateway.client)


async def test_every_route_of_the_openapi_document_has_a_case_for_bound_keys(gateway: Gateway) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    routes = {f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs}
    groups = (RECORDS, SCOPES, LISTS, WORKING_LISTS, ERASURES, WITHOUT_KEY)
    assert sorted(routes) == sorted(route for group in groups for route in group), (
        "give a new route a case in tests/isolation/rights_cases.py"
    )


@each_key
@pytest.mark.parametrize("route", RECORDS)
async def test_a_key_does_with_a_record_what_the_table_says(
    gateway: Gateway, world: World, route: str, key: str
) -> None:
    async with await gateway.new_client(**KEYS[key]) as client:
        for case in RECORDS[route]:
            for owner in OWNERS:
                cell = _cell(case.area, key, owner)
                world.fresh = case.writes and cell == "rw"
                call = await case.make(world, OWNERS[owner])
                is_refused = case.writes and not world.fresh
                before = await _probe(world, case, call) if is_refused else None
                await _ask(client, route, case, call, cell, owner)
                if is_refused:
                    assert await _probe(world, case, call) == before, f"{route} of {owner} changed it"
            world.fresh = False
            if may(_table_area(case.area), key, "foreign") in {"-", "x"}:
                await _ask_by_a_like_name(client, route, case, world, key)


def _table_area(area: str) -> str:
    return "session" if area == "store" else area


def _cell(area: str, key: str, owner: str) -> str:
    """Return the cell of the table, with `x` where a request for a scratch store names a foreign scope."""
    cell = may(_table_area(area), key, owner)
    # A key bound to a user cannot name the common scope: the request means the key's own, which is empty.
    if area == "store" and cell == "-":
        return "empty" if owner == "common" else "x"
    return cell


async def _ask(
    client: httpx.AsyncClient, route: str, case: RecordCase, call: Call, cell: str, owner: str
) -> None:
    response = await send(client, route, call)
    text = f"{route} of {owner}: {response.status_code} {response.text}"
    if cell == "rw" or (cell == "r" and not case.writes):
        # 409: a run that has not ended yet can't be undone.
        assert response.is_success or (route.endswith("/undo") and response.status_code == 409), text
    elif cell == "empty":
        assert response.status_code in {200, 404, 409}, text
        assert not case.writes or response.status_code == 409 or response.json()["deleted"] is False, text
    elif cell in {"x", "r"}:
        assert response.status_code == 403, text
    else:
        assert response.status_code == case.absent, text
        assert response.status_code == 404 or response.json()["deleted"] is False, text


async def _ask_by_a_like_name(
    client: httpx.AsyncClient, route: str, case: RecordCase, world: World, key: str
) -> None:
    """Ask for a foreign record by its name in the other case: no more is allowed than by its own."""
    call = await case.make(world, OWNERS["foreign"])
    swapped = {
        name: value.swapcase() if name in {"session_id", "memory_id", "run_id", "key", "name"} else value
        for name, value in call.path.items()
    }
    query = {name: value.swapcase() if name == "prefix" else value for name, value in call.query.items()}
    call = replace(call, path=swapped, query=query)
    if isinstance(call.body, dict) and "session_id" in call.body:
        call = replace(call, body=call.body | {"session_id": call.body["session_id"].swapcase()})
    await _ask(client, route, case, call, _cell(case.area, key, "foreign"), "foreign, in the other case")


async def _probe(world: World, case: RecordCase, call: Call) -> Any:
    """Return what an unbound key reads of the record."""
    path = call.path
    paths = {
        "memory": ["/v1/memories/{memory_id}", "/v1/memories/{memory_id}/history"],
        "session": [f"/v1/sessions/{{session_id}}{part}" for part in ("", "/turns", "/kv", "/collections")],
        "store": ["/v1/stores/{name}/kv", "/v1/stores/{name}/collections"],
        "agent": [f"/v1/agents/{{agent_id}}{part}" for part in ("", "/kv", "/texts", "/files")],
        "tenant": ["/v1/directives", "/v1/prices", "/v1/budgets"],
    }.get(case.area, ["/v1/working/{key}"])
    if "run_id" in path:
        paths = ["/v1/dreams/{run_id}"]
    names = {"key": f"{call.query.get('prefix')}/note", "session_id": (call.body or {}).get("session_id")}
    query = dict(call.query) if case.area == "store" else {}
    return [
        (await world.client.get(template.format(**{**names, **path}), params=query)).json()
        for template in paths
    ]


@each_key
@pytest.mark.parametrize("route", SCOPES)
async def test_a_key_writes_into_scopes_that_the_table_gives_it_and_names_no_other(
    gateway: Gateway, world: World, route: str, key: str
) -> None:
    del world
    async with await gateway.new_client(**KEYS[key]) as client:
        for name, owner in OWNERS.items():
            case = SCOPES[route]
            response = await send(client, route, scope_call(route, case, owner.scope()))
            status, content = _first_result(route, response)
            cell = may(case.area, key, name)
            text = f"{route} of {name}: {response.status_code} {response.text}"
            if cell == "rw":
                assert status in {200, 201, 409} if route == "POST /v1/dreams" else status < 300, text
                continue
            if name == "common" and cell in {"r", "-"}:
                # Without a user the request means the user of the key.
                assert status < 300 or route == "POST /v1/dreams", text
                assert content.get("user_id", USER) == USER, text
                continue
            assert status == 403, text


def _first_result(route: str, response: httpx.Response) -> tuple[int, dict[str, Any]]:
    content = response.json()
    if route.endswith("/batch") and "results" in content:
        content = content["results"][0]
        return int(content.get("status", 201)), content
    return response.status_code, content


@each_key
@pytest.mark.parametrize("route", LISTS)
async def test_a_list_shows_what_the_table_lets_a_key_read(
    gateway: Gateway, world: World, route: str, key: str
) -> None:
    case = LISTS[route]
    words = {name: await world.words(owner) for name, owner in OWNERS.items()}
    if not case.has_words:
        words = {name: await world.run(owner) for name, owner in OWNERS.items()}
    readable = {name for name in OWNERS if may(case.area, key, name) in {"r", "rw"}}
    async with await gateway.new_client(**KEYS[key]) as client:
        for name, owner in OWNERS.items():
            response = await send(client, route, _list_call(case.body, case.query, owner.scope()))
            shown = {shown for shown in words if words[shown] in response.text}
            text = f"{route} of {name}: {response.status_code} {response.text}"
            if may(case.area, key, name) == "rw":
                assert response.status_code == 200, text
                assert name in shown, text
            assert shown <= readable, text
            names_user = owner.user_id is not None
            if may(case.area, key, name) == "x" or (name not in readable and names_user):
                assert response.status_code == 403, text


def _list_call(body: dict[str, Any] | None, query: dict[str, str], named: dict[str, str]) -> Call:
    return Call(200, query=query | named) if body is None else Call(200, body=body | named)


@each_key
async def test_working_memory_is_listed_and_searched_as_the_table_says(
    gateway: Gateway, world: World, key: str
) -> None:
    words = {
        (area, name): (await world.working_key(area, owner, f"lantern {new_name()}"))
        for area in WORKING_AREAS
        for name, owner in OWNERS.items()
    }
    expected = {place for place in words if may(place[0], key, place[1]) in {"r", "rw"}}
    async with await gateway.new_client(**KEYS[key]) as client:
        for prefix in ("session", "patrol", "subagent"):
            listed = await client.get("/v1/working", params={"prefix": prefix})
            body = {"query": "lantern", "prefix": prefix, "limit": 100}
            searched = await client.post("/v1/working/search", json=body)
            newest = await client.post("/v1/working/search", json=body | {"query": None})
            for response in (listed, searched, newest):
                assert response.status_code == 200, response.text
                shown = {place for place in words if words[place] in response.text}
                below = {place for place in expected if words[place].startswith(f"{prefix}/")}
                assert shown == below, f"{prefix}: {response.text}"


@each_key
async def test_only_an_unbound_key_or_one_of_that_user_alone_erases_a_user(
    make_settings: Callable[..., config.Settings], key: str
) -> None:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        async with await gateway.new_client(**KEYS[key]) as client:
            statuses = [
                (await client.delete(f"/v1/users/{user}")).status_code for user in (USER, OTHER_USER, "ADA")
            ]
        allowed = {"unbound": [200] * 3, "user": [200, 403, 403]}
        assert statuses == allowed.get(key, [403] * 3)
        async with await gateway.new_client(**KEYS[key], rights=["read", "write"]) as client:
            assert (await client.delete(f"/v1/users/{USER}")).status_code == 403
