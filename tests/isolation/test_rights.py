"""Every route with every kind of binding, on records that are own, common, foreign or of a like name.

The routes come from the OpenAPI document, and what is expected from `rights_table.py`. All keys have all
rights: `admin` widens no binding. A test asks for the records of all owners with all keys, and names each
cell of the table that is wrong.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from shared.foundation import config
from tests.conftest import Gateway, running_gateway
from tests.isolation.asking import quoted_path, send
from tests.isolation.calls import Call
from tests.isolation.records import WORKING_AREAS
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
    WORKING_LISTS,
    ListCase,
    RecordCase,
    ScopeCase,
    scope_call,
    uses_up,
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
_OPERATIONS = 100
"""The most that a batch may have."""
Clients = Mapping[str, httpx.AsyncClient]
"""A client for each kind of key."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def world(gateway: Gateway) -> World:
    return World(gateway.client)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clients(gateway: Gateway) -> AsyncIterator[Clients]:
    async with AsyncExitStack() as closing:
        yield {
            key: await closing.enter_async_context(await gateway.new_client(**bindings))
            for key, bindings in KEYS.items()
        }


async def test_every_route_of_the_openapi_document_has_a_case_for_bound_keys(gateway: Gateway) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    routes = {f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs}
    others = (WORKING_LISTS, SUBJECT_LISTS, ERASURES, PROPOSALS, BATCHES, TOOLS, WITHOUT_KEY)
    groups = (RECORDS, SCOPES, LISTS, *others)
    assert sorted(routes) == sorted(route for group in groups for route in group), (
        "give a new route a case in tests/isolation/rights_cases.py"
    )


class Asked(NamedTuple):
    """A request for the record of an owner with a key. `cell` is that of the table."""

    route: str
    case: RecordCase
    key: str
    owner: str
    call: Call
    cell: str


class Refused(NamedTuple):
    """What keys were answered that asked for what they may not do, and what was there before and after."""

    answers: list[tuple[Asked, httpx.Response]]
    before: dict[str, Any]
    after: dict[str, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def refused(clients: Clients, world: World) -> Refused:
    """Ask by every route for all that keys may not do."""
    asked = await _all_that_is_refused(world)
    before = await _read_all(world, asked)
    answers = [(request, await send(clients[request.key], request.route, request.call)) for request in asked]
    return Refused(answers, before, await _read_all(world, asked))


async def _all_that_is_refused(world: World) -> list[Asked]:
    cases = [(route, case) for route, cases in RECORDS.items() for case in cases]
    named = {
        (case.record, owner): await case.record.make(world, OWNERS[owner])
        for case in {case.record: case for _, case in cases}.values()
        for owner in OWNERS
    }
    asked = [
        Asked(
            route, case, key, owner, case.called.call_for(named[case.record, owner]), _cell(case, key, owner)
        )
        for route, case in cases
        for key in KEYS
        for owner in OWNERS
    ]
    by_a_like_name = [
        request._replace(owner="like", call=_by_a_like_name(request.call))
        for request in asked
        if request.owner == "foreign"
        if may(_table_area(request.case.area), request.key, "foreign") in {"-", "x"}
        and may(_table_area(request.case.area), request.key, "foreign") in {"-", "x"}
    ]
    return [request for request in asked if not _is_allowed(request.case, request.cell)] + by_a_like_name


def test_what_a_key_may_not_do_with_a_record_is_refused_and_changes_nothing(refused: Refused) -> None:
    wrong = [text for asked, response in refused.answers for text in _check(asked, response)]
    assert not wrong, "\n".join(wrong)
    assert refused.after == refused.before


async def test_an_operation_of_a_batch_is_refused_what_a_request_of_its_own_is(
    clients: Clients, refused: Refused
) -> None:
    wrong: list[str] = []
    for key in ("agent", "user", "namespace"):
        answers = [
            (asked, alone)
            for asked, alone in refused.answers
            if (asked.key, asked.owner) == (key, "foreign") and asked.cell in {"-", "x"}
            if asked.call.content is None
        ]
        assert answers
        for start in range(0, len(answers), _OPERATIONS):
            wrong += await _ask_in_batch(clients[key], answers[start : start + _OPERATIONS])
    assert not wrong, "\n".join(wrong)


async def _ask_in_batch(
    client: httpx.AsyncClient, answers: Sequence[tuple[Asked, httpx.Response]]
) -> list[str]:
    """Send requests as operations of a batch. Return how the answers differ from those to each by itself."""
    operations = [_operation(asked) for asked, _ in answers]
    results = (await client.post("/v1/batch", json={"operations": operations})).json()["results"]
    wrong: list[str] = []
    for (asked, alone), result in zip(answers, results, strict=True):
        if result["status"] == 422:  # a route of bytes is no operation
            is_right = "can't be an operation" in result["body"]["detail"]
        else:
            is_right = (result["status"], result["body"]) == (alone.status_code, alone.json())
        if not is_right:
            wrong.append(f"{asked}: {result}, but alone {alone.status_code} {alone.text}")
    return wrong


def _operation(asked: Asked) -> dict[str, Any]:
    path = str(httpx.URL(quoted_path(asked.route, asked.call), params=dict(asked.call.query)))
    body = {} if asked.call.body is None else {"body": asked.call.body}
    return {"method": asked.route.split(" ", maxsplit=1)[0], "path": path, **body}


@pytest.mark.parametrize("route", RECORDS)
async def test_a_key_does_with_a_record_what_the_table_says(
    clients: Clients, world: World, route: str
) -> None:
    """Send what keys may do, each time for a record of its own if the request uses it up."""
    wrong: list[str] = []
    for case in RECORDS[route]:
        world.fresh = case.writes and uses_up(route, case)
        calls: dict[str, Call] = {}
        for key, owner in product(KEYS, OWNERS):
            cell = _cell(case, key, owner)
            if not _is_allowed(case, cell):
                continue
            if world.fresh or owner not in calls:
                calls[owner] = await case.make(world, OWNERS[owner])
            response = await send(clients[key], route, calls[owner])
            wrong += _check(Asked(route, case, key, owner, calls[owner], cell), response)
        world.fresh = False
    assert not wrong, "\n".join(wrong)


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


def _is_allowed(case: RecordCase, cell: str) -> bool:
    return cell == "rw" or (cell in READABLE and not case.writes)


def _check(asked: Asked, response: httpx.Response) -> list[str]:
    """Return what is wrong with a response, if anything is."""
    if _is_expected(asked.route, asked.case, asked.cell, response):
        return []
    of_path = quoted_path(asked.route, asked.call)
    what = f"{asked.route} ({of_path}) of {asked.owner} with key {asked.key}"
    return [f"{what}: {response.status_code} {response.text}"]


def _is_expected(route: str, case: RecordCase, cell: str, response: httpx.Response) -> bool:
    status = response.status_code
    if _is_allowed(case, cell):
        # A run that has not ended yet can't be undone, nothing is enriched without a model, what has no user
        # is not mined, and what nothing contests is not resolved.
        is_conflict = route.endswith(("/undo", "/enrich", "/mine", "/resolve")) and status == 409
        return response.is_success or is_conflict
    if cell == "empty":
        is_untouched = not case.writes or status == 409 or response.json().get("deleted") is False
        return status in {200, 404, 409} and is_untouched
    if cell in {"x", "r"}:
        return status == 403
    return status == case.absent and (status == 404 or response.json()["deleted"] is False)


def _by_a_like_name(call: Call) -> Call:
    """Return a request for a record by its name in the other case: no more is allowed than by its own."""
    swapped = {
        name: value.swapcase() if name in {"session_id", "memory_id", "run_id", "key", "name"} else value
        for name, value in call.path.items()
    }
    query = {name: value.swapcase() if name == "prefix" else value for name, value in call.query.items()}
    call = replace(call, path=swapped, query=query)
    if isinstance(call.body, dict) and "session_id" in call.body:
        return replace(call, body=call.body | {"session_id": call.body["session_id"].swapcase()})
    return call


async def _read_all(world: World, asked: Sequence[Asked]) -> dict[str, Any]:
    """Return what an unbound key reads of the records that requests would write, by path."""
    paths = {path for request in asked if request.case.writes for path in _paths(request.case, request.call)}
    return {path: (await world.client.get(path)).json() for path in sorted(paths)}


def _paths(case: RecordCase, call: Call) -> list[str]:
    """Return the paths that show the record of a request."""
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
    return [str(httpx.URL(template.format(**{**names, **path}), params=query)) for template in paths]


@pytest.mark.parametrize("route", SCOPES)
async def test_a_key_writes_into_scopes_that_the_table_gives_it_and_names_no_other(
    clients: Clients, route: str
) -> None:
    case = SCOPES[route]
    wrong: list[str] = []
    for key in KEYS:
        for name, owner in OWNERS.items():
            response = await send(clients[key], route, scope_call(route, case, owner.scope()))
            if not _is_expected_of_scope(route, case, key, name, response):
                wrong.append(f"{route} of {name} with key {key}: {response.status_code} {response.text}")
    assert not wrong, "\n".join(wrong)


def _is_expected_of_scope(route: str, case: ScopeCase, key: str, name: str, response: httpx.Response) -> bool:
    status, content = _first_result(route, response)
    cell = may(case.area, key, name)
    if cell == "rw":
        return status in {200, 201, 409} if route == "POST /v1/dreams" else status < 300
    if name == "common" and cell in {"r", "-"}:
        # Without a user the request means the user of the key.
        return (status < 300 or route == "POST /v1/dreams") and content.get("user_id", USER) == USER
    return status == 403


def _first_result(route: str, response: httpx.Response) -> tuple[int, dict[str, Any]]:
    content = response.json()
    if route.endswith("/batch") and "results" in content:
        content = content["results"][0]
        return int(content.get("status", 201)), content
    return response.status_code, content


@pytest.mark.parametrize("route", LISTS)
async def test_a_list_shows_what_the_table_lets_a_key_read(
    clients: Clients, world: World, route: str
) -> None:
    case = LISTS[route]
    words = {name: await world.words(owner) for name, owner in OWNERS.items()}
    if not case.has_words:
        words = {name: await world.run(owner) for name, owner in OWNERS.items()}
    wrong: list[str] = []
    for key in KEYS:
        for name, owner in OWNERS.items():
            response = await send(clients[key], route, _list_call(case.body, case.query, owner.scope()))
            shown = {shown for shown in words if words[shown] in response.text}
            if not _is_expected_of_list(case, key, name, response, shown):
                wrong.append(f"{route} of {name} with key {key}: {response.status_code} {response.text}")
    assert not wrong, "\n".join(wrong)


def _is_expected_of_list(
    case: ListCase, key: str, name: str, response: httpx.Response, shown: set[str]
) -> bool:
    cell, status = may(case.area, key, name), response.status_code
    readable = {name for name in OWNERS if may(case.area, key, name) in READABLE}
    names_user = OWNERS[name].user_id is not None
    if cell == "rw" and (status != 200 or name not in shown):
        return False
    must_refuse = cell == "x" or (name not in readable and names_user)
    return shown <= readable and (status == 403 or not must_refuse)


def _list_call(body: dict[str, Any] | None, query: dict[str, str], named: dict[str, str]) -> Call:
    return Call(200, query=query | named) if body is None else Call(200, body=body | named)


async def test_working_memory_is_listed_and_searched_as_the_table_says(
    clients: Clients, world: World
) -> None:
    words = {
        (area, name): (await world.working_key(area, owner, f"lantern {new_name()}"))
        for area in WORKING_AREAS
        for name, owner in OWNERS.items()
    }
    wrong: list[str] = []
    for key, client in clients.items():
        expected = {place for place in words if may(place[0], key, place[1]) in READABLE}
        for prefix in ("session", "patrol", "subagent"):
            below = {place for place in expected if words[place].startswith(f"{prefix}/")}
            listed = await client.get("/v1/working", params={"prefix": prefix})
            body = {"query": "lantern", "prefix": prefix, "limit": 100}
            searched = await client.post("/v1/working/search", json=body)
            newest = await client.post("/v1/working/search", json=body | {"query": None})
            for response in (listed, searched, newest):
                shown = {place for place in words if words[place] in response.text}
                if response.status_code != 200 or shown != below:
                    wrong.append(f"{response.url} with key {key}: {response.status_code} {response.text}")
    assert not wrong, "\n".join(wrong)


async def test_users_and_agents_are_listed_as_far_as_the_key_reaches(clients: Clients, world: World) -> None:
    for owner in OWNERS.values():
        await world.session(owner)
    wrong: list[str] = []
    for key, client in clients.items():
        for path, ids in _listed_subjects(key).items():
            response = await client.get(path)
            rows = response.json().get("results", [])
            status = 403 if ids is None else 200
            if response.status_code != status or [row["id"] for row in rows] != (ids or []):
                wrong.append(f"{path} with key {key}: {response.status_code} {response.text}")
    assert not wrong, "\n".join(wrong)


def _listed_subjects(key: str) -> dict[str, list[str] | None]:
    """Return the ids that each list shows; None where it is refused."""
    everybody, agents = [USER, OTHER_USER], [AGENT, OTHER_AGENT]
    users = {"unbound": everybody, "agent": everybody, "user": [USER], "agent and user": [USER]}
    return {
        "/v1/users": users.get(key),
        f"/v1/users?agent_id={AGENT}": users.get(key),
        f"/v1/users?agent_id={OTHER_AGENT}": users[key] if key in ("unbound", "user") else None,
        f"/v1/users?prefix={OTHER_USER}": [OTHER_USER]
        if key in ("unbound", "agent")
        else users.get(key) and [],
        "/v1/agents": {"unbound": agents, "agent": [AGENT]}.get(key),
    }


async def test_only_an_unbound_key_or_one_of_that_user_alone_erases_a_user(gateway: Gateway) -> None:
    allowed = {"unbound": [200] * 3, "user": [200, 403, 403]}
    paths = [f"/v1/users/{user}" for user in (USER, OTHER_USER, "ADA")]
    statuses = {key: await _erase(gateway, key, paths) for key in KEYS}
    assert statuses == {key: allowed.get(key, [403] * 3) for key in KEYS}


async def test_only_an_unbound_key_or_one_of_that_agent_alone_erases_an_agent(gateway: Gateway) -> None:
    allowed = {"unbound": [200] * 3, "agent": [200, 403, 403]}
    paths = [f"/v1/agents/{agent}" for agent in (AGENT, OTHER_AGENT, "INN")]
    statuses = {key: await _erase(gateway, key, paths) for key in KEYS}
    assert statuses == {key: allowed.get(key, [403] * 3) for key in KEYS}


async def _erase(gateway: Gateway, key: str, paths: list[str]) -> list[int]:
    """Return the statuses of erasures with a new tenant's key; the first is refused without `admin`."""
    tenant = f"t-{uuid4().hex[:12]}"
    async with await gateway.new_client(tenant, **KEYS[key], rights=["read", "write"]) as client:
        assert (await client.delete(paths[0])).status_code == 403
    async with await gateway.new_client(tenant, **KEYS[key]) as client:
        return [(await client.delete(path)).status_code for path in paths]


async def test_a_bound_key_reads_only_the_receipts_of_its_own_user_or_agent(
    gateway: Gateway, clients: Clients
) -> None:
    paths = [f"/v1/users/{USER}", f"/v1/users/{OTHER_USER}", f"/v1/agents/{OTHER_AGENT}"]
    ids = [(await gateway.client.delete(path)).json()["id"] for path in paths]
    allowed = {"unbound": [200] * 3, "user": [200, 404, 404], "namespace": [403] * 3}
    statuses = {
        key: [(await client.get(f"/v1/erasures/{erasure_id}")).status_code for erasure_id in ids]
        for key, client in clients.items()
    }
    assert statuses == {key: allowed.get(key, [404] * 3) for key in KEYS}
