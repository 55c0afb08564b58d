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
from tests.isolation.asking import quoted_path, send
from tests.isolation.cases import Call
from tests.isolation.rights_cases import (
    BATCHES,
    ERASURES,
    LISTS,
    PROPOSALS,
    RECORDS,
    SCOPES,
    SUBJECT_LISTS,
    TOOLS,
    WITHOUT_KEY,
    WORKING_AREAS,
    WORKING_LISTS,
    RecordCase,
    scope_call,
)
from tests.isolation.rights_table import (
    AGENT,
    KEYS,
    OTHER_AGENT,
    OTHER_USER,
    OWNERS,
    READABLE,
    USER,
    may,
)
from tests.isolation.rights_world import World, new_name

# A request names their owner, and a user's key reads the agent's, too.
_OF_SCOPE = {"pinned text", "preference", "skill"}
_SESSION_PARTS = ("", "/turns", "/kv", "/collections", "/scratchpad")
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
    others = (WORKING_LISTS, SUBJECT_LISTS, ERASURES, PROPOSALS, BATCHES, TOOLS, WITHOUT_KEY)
    groups = (RECORDS, SCOPES, LISTS, *others)
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
                cell = _cell(case, key, owner)
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


@pytest.mark.parametrize("key", ["agent", "user", "namespace"])
async def test_an_operation_of_a_batch_is_refused_what_a_request_of_its_own_is(
    gateway: Gateway, world: World, key: str
) -> None:
    async with await gateway.new_client(**KEYS[key]) as client:
        for route, case in [(route, case) for route, cases in RECORDS.items() for case in cases]:
            call = await case.make(world, OWNERS["foreign"])
            if _cell(case, key, "foreign") not in {"-", "x"} or call.content is not None:
                continue
            method, path = route.split(" ")[0], quoted_path(route, call)
            operation = {"method": method, "path": str(httpx.URL(path, params=dict(call.query)))}
            body = {"operations": [operation | ({} if call.body is None else {"body": call.body})]}
            [result] = (await client.post("/v1/batch", json=body)).json()["results"]
            alone = await send(client, route, call)
            if result["status"] != 422:  # a route of bytes is no operation
                assert (result["status"], result["body"]) == (alone.status_code, alone.json()), route
            else:
                assert "can't be an operation" in result["body"]["detail"], route


def _table_area(area: str) -> str:
    of_memories = dict.fromkeys({"key", "playbook", "entity", "triple", *_OF_SCOPE}, "memory")
    return ({"store": "session"} | of_memories).get(area, area)


def _cell(case: RecordCase, key: str, owner: str) -> str:
    """Return the cell of the table, with `x` where a request that names a scope names a foreign one."""
    area = case.area
    cell = may(_table_area(area), key, owner)
    if area in _OF_SCOPE and cell == "-":
        return "x"
    if area in _OF_SCOPE and cell == "r" and case.writes:
        return "empty"
    # A key bound to a user cannot name the common scope: the request means the key's own, which is empty.
    if area in {"store", "key"} and cell in {"-", "r"}:
        return "empty" if owner == "common" else "x"
    return cell


async def _ask(
    client: httpx.AsyncClient, route: str, case: RecordCase, call: Call, cell: str, owner: str
) -> None:
    response = await send(client, route, call)
    text = f"{route} of {owner}: {response.status_code} {response.text}"
    if cell == "rw" or (cell in READABLE and not case.writes):
        # A run that has not ended yet can't be undone, nothing is enriched without a model, and what has no
        # user is not mined.
        is_conflict = route.endswith(("/undo", "/enrich", "/mine")) and response.status_code == 409
        assert response.is_success or is_conflict, text
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
    await _ask(client, route, case, call, _cell(case, key, "foreign"), "foreign, in the other case")


async def _probe(world: World, case: RecordCase, call: Call) -> Any:
    """Return what an unbound key reads of the record."""
    path = call.path
    paths = {
        "memory": ["/v1/memories/{memory_id}", "/v1/memories/{memory_id}/history"],
        "key": ["/v1/memories/by-key"],
        "session": [f"/v1/sessions/{{session_id}}{part}" for part in _SESSION_PARTS],
        "store": ["/v1/stores/{name}/kv", "/v1/stores/{name}/collections"],
        "pinned text": ["/v1/pinned/{name}"],
        "preference": ["/v1/preferences/{key}"],
        "playbook": ["/v1/playbooks/{playbook_id}"],
        "skill": ["/v1/skills/{skill}", "/v1/skills/{skill}/versions"],
        "entity": ["/v1/graph/entities/{entity_id}"],
        "triple": ["/v1/graph/triples/{triple_id}"],
        "agent": [f"/v1/agents/{{agent_id}}{part}" for part in ("", "/kv", "/texts", "/files")],
        "tenant": [
            "/v1/directives",
            "/v1/prices",
            "/v1/budgets",
            "/v1/business-context",
            "/v1/patterns/consent",
            "/v1/documents",
        ],
    }.get(case.area, ["/v1/working/{key}"])
    if "run_id" in path:
        paths = ["/v1/dreams/{run_id}"]
    names = {"key": f"{call.query.get('prefix')}/note", "session_id": (call.body or {}).get("session_id")}
    query = dict(call.query) if case.area in {"store", "key", *_OF_SCOPE} else {}
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
    readable = {name for name in OWNERS if may(case.area, key, name) in READABLE}
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
    expected = {place for place in words if may(place[0], key, place[1]) in READABLE}
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
async def test_users_and_agents_are_listed_as_far_as_the_key_reaches(
    gateway: Gateway, world: World, key: str
) -> None:
    for owner in OWNERS.values():
        await world.session(owner)
    everybody, agents = [USER, OTHER_USER], [AGENT, OTHER_AGENT]
    users = {"unbound": everybody, "agent": everybody, "user": [USER], "agent and user": [USER]}
    async with await gateway.new_client(**KEYS[key]) as client:
        expected = {
            "/v1/users": users.get(key),
            f"/v1/users?agent_id={AGENT}": users.get(key),
            f"/v1/users?agent_id={OTHER_AGENT}": users[key] if key in ("unbound", "user") else None,
            f"/v1/users?prefix={OTHER_USER}": [OTHER_USER]
            if key in ("unbound", "agent")
            else users.get(key) and [],
            "/v1/agents": {"unbound": agents, "agent": [AGENT]}.get(key),
        }
        for path, ids in expected.items():
            response = await client.get(path)
            assert response.status_code == (403 if ids is None else 200), f"{path}: {response.text}"
            assert ids is None or [row["id"] for row in response.json()["results"]] == ids, path


@each_key
async def test_only_an_unbound_key_or_one_of_that_user_alone_erases_a_user(
    make_settings: Callable[..., config.Settings], key: str
) -> None:
    allowed = {"unbound": [200] * 3, "user": [200, 403, 403]}
    paths = [f"/v1/users/{user}" for user in (USER, OTHER_USER, "ADA")]
    assert await _erase(make_settings(), key, paths) == allowed.get(key, [403] * 3)


@each_key
async def test_only_an_unbound_key_or_one_of_that_agent_alone_erases_an_agent(
    make_settings: Callable[..., config.Settings], key: str
) -> None:
    allowed = {"unbound": [200] * 3, "agent": [200, 403, 403]}
    paths = [f"/v1/agents/{agent}" for agent in (AGENT, OTHER_AGENT, "INN")]
    assert await _erase(make_settings(), key, paths) == allowed.get(key, [403] * 3)


async def _erase(settings: config.Settings, key: str, paths: list[str]) -> list[int]:
    """Return the statuses of erasures with a key; without the right `admin` the first must be refused."""
    async with running_gateway(settings, f"t-{uuid4().hex[:12]}") as gateway:
        async with await gateway.new_client(**KEYS[key], rights=["read", "write"]) as client:
            assert (await client.delete(paths[0])).status_code == 403
        async with await gateway.new_client(**KEYS[key]) as client:
            return [(await client.delete(path)).status_code for path in paths]


@each_key
async def test_a_bound_key_reads_only_the_receipts_of_its_own_user_or_agent(
    gateway: Gateway, key: str
) -> None:
    paths = [f"/v1/users/{USER}", f"/v1/users/{OTHER_USER}", f"/v1/agents/{OTHER_AGENT}"]
    ids = [(await gateway.client.delete(path)).json()["id"] for path in paths]
    allowed = {"unbound": [200] * 3, "user": [200, 404, 404], "namespace": [403] * 3}
    async with await gateway.new_client(**KEYS[key]) as client:
        statuses = [(await client.get(f"/v1/erasures/{erasure_id}")).status_code for erasure_id in ids]
    assert statuses == allowed.get(key, [404] * 3)
