"""Every tool with every kind of binding, on records that are own, common or foreign.

The tools come from the registry, and what is expected from `rights_table.py`. A key is bound when it is
issued, or an unbound one is bound by the headers of the request: the same must hold. All keys have all
rights.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from services.gateway.tools import registry
from shared.foundation import config
from tests.conftest import Gateway, running_gateway
from tests.isolation import foreign_tool_calls
from tests.isolation.rights_table import KEYS, OWNERS, READABLE, Owner, may
from tests.isolation.rights_world import World, new_name
from tests.isolation.tool_cases import (
    LISTS,
    RECORDS,
    SCOPES,
    SESSIONS,
    SKILLS,
    WORKING_AREAS,
    WORKING_LISTS,
    Arguments,
    RecordCase,
)

_PARTS = ("/scratchpad", "/turns")
_HEADERS = {"agent_id": "loci-agent", "user_id": "loci-user"}


class Holder(NamedTuple):
    """Who calls: the row of the table, how the key is bound, and the headers of each request."""

    row: str
    key: dict[str, str]
    headers: dict[str, str]


def _headers(fields: dict[str, str]) -> dict[str, str]:
    return {_HEADERS[name]: value for name, value in fields.items()}


HOLDERS = {f"{row} by key": Holder(row, fields, {}) for row, fields in KEYS.items()} | {
    f"{row} by headers": Holder(row, {}, _headers(fields))
    for row, fields in KEYS.items()
    if fields and "namespace" not in fields
}
each_holder = pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)


class Answer(NamedTuple):
    """The status of a call, its text, and whether it is about an error."""

    status: int
    content: str
    is_error: bool

    @property
    def is_good(self) -> bool:
        """Whether the tool did what it was asked for."""
        return self.status == 200 and not self.is_error


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def world(gateway: Gateway) -> World:
    return World(gateway.client)


@pytest_asyncio.fixture(loop_scope="session")
async def client(gateway: Gateway, holder: Holder) -> AsyncIterator[httpx.AsyncClient]:
    async with await gateway.new_client(**holder.key) as client:
        client.headers.update(holder.headers)
        yield client


async def _call(client: httpx.AsyncClient, tool: str, arguments: Arguments, **headers: str) -> Answer:
    response = await client.post(f"/v1/tools/{tool}", json={"arguments": arguments}, headers=headers)
    assert response.status_code in {200, 403}, response.text
    body: dict[str, Any] = response.json()
    return Answer(response.status_code, body.get("content", ""), body.get("is_error", True))


def test_every_tool_has_a_case() -> None:
    cases = (*RECORDS, *SESSIONS, *SCOPES, *LISTS, *SKILLS, *WORKING_LISTS)
    assert sorted(cases) == sorted(registry.BY_NAME), (
        "give a new tool a case in tests/isolation/tool_cases.py"
    )
    assert set(foreign_tool_calls.ARGUMENTS) == set(registry.BY_NAME), "and arguments with foreign ids"


@each_holder
@pytest.mark.parametrize("tool", RECORDS)
async def test_a_tool_does_with_a_record_what_the_table_says(
    client: httpx.AsyncClient, world: World, holder: Holder, tool: str
) -> None:
    for case in RECORDS[tool]:
        for name, owner in OWNERS.items():
            cell = may(case.area, holder.row, name)
            world.fresh = case.writes and cell == "rw"
            arguments = await case.make(world, owner)
            is_refused = case.writes and not world.fresh
            before = await _probe(world, arguments) if is_refused else None
            answer = await _call(client, tool, arguments)
            _check(answer, cell, case, f"{tool} of {name}: {answer}")
            if cell == "-" or (cell == "r-" and case.writes):
                await _check_reveals_nothing(client, tool, arguments, answer)
            if is_refused:
                assert await _probe(world, arguments) == before, f"{tool} of {name} changed it"
        world.fresh = False


def _check(answer: Answer, cell: str, case: RecordCase, text: str) -> None:
    if cell == "rw" or (cell in READABLE and not case.writes):
        assert answer.is_good, text
    elif cell == "x":
        assert answer.status == 403, text
    elif cell == "r":
        assert answer.status == 403 or answer.is_error, text
    else:
        assert answer.status == 200, text
        assert answer.is_error is case.absent_is_error, text


async def _check_reveals_nothing(
    client: httpx.AsyncClient, tool: str, arguments: Arguments, answer: Answer
) -> None:
    """Ask for what is nowhere: the answer must be the same but for the name."""
    (name,) = (field for field in ("id", "key") if field in arguments)
    unknown = uuid4().hex[:12] if name == "id" else f"patrol/{new_name()}/note"
    other = await _call(client, tool, arguments | {name: unknown})
    assert other.content.replace(unknown, "…") == answer.content.replace(arguments[name], "…")
    assert arguments[name] in answer.content


async def _probe(world: World, arguments: Arguments) -> Any:
    """Return what an unbound key reads of the record."""
    path = f"/v1/memories/{arguments['id']}" if "id" in arguments else f"/v1/working/{arguments['key']}"
    return (await world.client.get(path)).json()


@each_holder
@pytest.mark.parametrize("tool", SESSIONS)
async def test_a_session_that_the_key_may_not_use_answers_as_an_unknown_one(
    client: httpx.AsyncClient, world: World, holder: Holder, tool: str
) -> None:
    case = SESSIONS[tool]
    for name, owner in OWNERS.items():
        session_id, cell = await world.session(owner), may("session", holder.row, name)
        before = await _session_state(world, session_id)
        answer = await _call(client, tool, case.arguments(), **{"loci-session": session_id})
        text = f"{tool} in the session of {name}: {answer}"
        if cell == "rw":
            assert answer.is_good, text
            assert (await _session_state(world, session_id) != before) is case.writes, text
            continue
        assert not answer.is_good, text
        assert await _session_state(world, session_id) == before, text
        if cell != "x":
            unknown = new_name()
            of_unknown = await _call(client, tool, case.arguments(), **{"loci-session": unknown})
            assert answer.content.replace(session_id, "…") == of_unknown.content.replace(unknown, "…")


async def _session_state(world: World, session_id: str) -> Any:
    """Return what an unbound key reads of a session's working memory, scratchpad and turns."""
    paths = (
        f"/v1/working?prefix=session/{session_id}",
        *(f"/v1/sessions/{session_id}{part}" for part in _PARTS),
    )
    return [(await world.client.get(path)).json() for path in paths]


@each_holder
@pytest.mark.parametrize("tool", SCOPES)
async def test_a_tool_writes_for_whom_the_headers_name_within_the_rights_of_the_key(
    client: httpx.AsyncClient, holder: Holder, tool: str
) -> None:
    for name, owner in OWNERS.items():
        answer = await _call(client, tool, SCOPES[tool](), **(_headers(owner.scope()) | holder.headers))
        text = f"{tool} for {name}: {answer}"
        if holder.row == "namespace":
            assert answer.status == 403, text
        elif holder.headers or name == "common" or may("memory", holder.row, name) == "rw":
            # Without a user the request means the user of the key; headers of the holder come before.
            assert answer.is_good, text
        else:
            assert answer.status == 403, text


@each_holder
@pytest.mark.parametrize("tool", SKILLS)
async def test_a_tool_reaches_the_skill_of_an_owner_as_the_table_says(
    client: httpx.AsyncClient, world: World, holder: Holder, tool: str
) -> None:
    case = SKILLS[tool]
    for name, owner in OWNERS.items():
        cell = may("memory", holder.row, name)
        world.fresh = case.writes and cell == "rw"
        skill = await world.skill(owner)
        headers = _headers(owner.scope()) | holder.headers
        answer = await _call(client, tool, {"name": skill, **case.arguments}, **headers)
        text = f"{tool} of {name}: {answer}"
        is_allowed = cell == "rw" or (cell in READABLE and not case.writes)
        if is_allowed:
            assert answer.is_good, text
        else:
            assert not answer.is_good or "nothing was deleted" in answer.content, text
        assert (answer.status == 403) or cell != "x", text
        left = await world.client.get(f"/v1/skills/{skill}", params=owner.scope())
        assert left.is_success is not (case.writes and is_allowed), text
    world.fresh = False


@each_holder
@pytest.mark.parametrize("tool", LISTS)
async def test_a_tool_shows_what_the_table_lets_a_key_read(
    client: httpx.AsyncClient, world: World, holder: Holder, tool: str
) -> None:
    words = {name: await world.words(owner) for name, owner in OWNERS.items()}
    readable = {name for name in OWNERS if may(LISTS[tool].area, holder.row, name) in READABLE}
    for name, owner in OWNERS.items():
        headers = _headers(owner.scope()) | holder.headers
        answer = await _call(client, tool, LISTS[tool].arguments, **headers)
        shown = {other for other in words if words[other] in answer.content}
        text = f"{tool} for {name}: {answer}"
        assert shown <= readable, text
        if not holder.headers and may(LISTS[tool].area, holder.row, name) == "rw":
            assert name in shown, text
    if "own" in readable:
        own = _headers(OWNERS["own"].scope()) | holder.headers
        answer = await _call(client, tool, LISTS[tool].arguments, **own)
        assert words["own"] in answer.content


@each_holder
@pytest.mark.parametrize("tool", sorted(WORKING_LISTS))
async def test_working_memory_is_shown_as_the_table_says(
    client: httpx.AsyncClient, world: World, holder: Holder, tool: str
) -> None:
    places = [(area, name) for area in WORKING_AREAS for name in OWNERS]
    lanterns = {(area, name): await world.working_key(area, OWNERS[name], "lantern") for area, name in places}
    expected = {place for place in places if may(place[0], holder.row, place[1]) in READABLE}
    for kind in ("session", "patrol", "subagent"):
        arguments: Arguments = {"namespace": kind}
        if tool == "search_working_memory":
            arguments |= {"query": "lantern", "limit": 20}
        answer = await _call(client, tool, arguments)
        shown = {place for place in places if lanterns[place] in answer.content}
        assert shown == {place for place in expected if lanterns[place].startswith(f"{kind}/")}, answer


@pytest.mark.parametrize("right", ["read", "write"])
async def test_a_key_is_listed_and_may_call_only_what_its_rights_allow(gateway: Gateway, right: str) -> None:
    async with await gateway.new_client(rights=[right]) as client:
        for tool_set in registry.SETS:
            query = {"set": tool_set, "style": "anthropic"}
            listed = (await client.get("/v1/tools", params=query, headers={"loci-session": "s"})).json()
            actions = {registry.BY_NAME[tool["name"]].action.value for tool in listed["results"]}
            assert actions <= {right}
        for name, tool in registry.BY_NAME.items():
            answer = await _call(client, name, {})
            assert (answer.status == 403) == (tool.action != right), f"{name}: {answer}"


async def test_the_agent_and_user_of_a_session_are_those_of_the_call(gateway: Gateway, world: World) -> None:
    owner = Owner(f"agent-{new_name()}", "ada")
    session_id = await world.session(owner)
    word = new_name()
    saved = await _call(gateway.client, "memory_add", {"content": word}, **{"loci-session": session_id})
    assert saved.is_good, saved
    memory = (await gateway.client.get("/v1/memories", params=owner.scope())).json()["results"]
    assert [(row["content"], row["agent_id"], row["user_id"]) for row in memory] == [(word, *owner)]


async def test_a_session_of_another_user_than_the_header_names_is_unknown(
    gateway: Gateway, world: World
) -> None:
    session_id = await world.session(OWNERS["own"])
    headers = {"loci-session": session_id, "loci-user": "bob"}
    answer = await _call(gateway.client, "memory_add", {"content": "slipped in"}, **headers)
    assert answer.is_error
    assert "session not found" in answer.content
