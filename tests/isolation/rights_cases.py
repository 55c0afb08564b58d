"""The requests of bound keys: for each route of the OpenAPI document, one that names a record of an owner.

A route without a case fails `test_rights.py`. `RECORDS` are routes to one record, which a path or a body
names. `SCOPES` name an agent and a user instead. `LISTS` show the records that a key may read.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from tests.isolation.cases import Call
from tests.isolation.rights_table import Owner
from tests.isolation.rights_world import World, new_name, to_lines

Make = Callable[[World, Owner], Awaitable[Call]]


class RecordCase(NamedTuple):
    """A request on one record: the row of the table, whether it writes, and how to make record and request.

    `absent` is the status for a record that does not exist.
    """

    area: str
    writes: bool
    make: Make
    absent: int = 404


class ScopeCase(NamedTuple):
    """A write that names an agent and a user, in its query or in its body, and its other fields."""

    area: str
    in_body: bool
    fields: Callable[[], dict[str, Any]]


class ListCase(NamedTuple):
    """A list or a search: the row of the table, and the fields of its body; None for a query."""

    area: str
    body: dict[str, Any] | None = None
    query: dict[str, str] = {}
    has_words: bool = True


_TURN = {"role": "user", "content": "said"}
_SIGNAL = {"type": "UserThumbsUp", "summary": "well"}
_DOC = {"type": "doc", "value": {}}


def _memory(*, writes: bool, body: Any = None, absent: int = 404) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"memory_id": await world.memory(owner)}, body=body)

    return RecordCase("memory", writes, make, absent)


def _session(*, writes: bool, body: Any = None, **path: str) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"session_id": await world.session(owner), **path}, body=body)

    return RecordCase("session", writes, make)


def _session_in_body() -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        return Call(200, body={"session_id": await world.session(owner), **_SIGNAL})

    return RecordCase("session", True, make)


def _run(*, writes: bool) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"run_id": await world.run(owner)})

    return RecordCase("session", writes, make)


def _agent(*, writes: bool, body: Any = None, content: bytes | None = None) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        return Call(200, await world.agent(owner), body=body, content=content)

    return RecordCase("agent", writes, make)


def _tenant(*, writes: bool, body: Any = None, **path: str) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        del world, owner
        return Call(200, path, body=body)

    return RecordCase("tenant", writes, make)


async def _budget(world: World, owner: Owner) -> Call:
    scope = f"agent/{owner.agent_id}"
    await world.succeed("PUT", f"/v1/budgets/{scope}", json={"period": "day", "limit_tokens": 10**9})
    return Call(200, {"scope": scope})


def _store(*, writes: bool, body: Any = None, **path: str) -> RecordCase:
    """Ask for a scratch store that only its owner may name, because the request names the owner."""

    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {**path, "name": await world.store(owner)}, owner.scope(), body)

    return RecordCase("store", writes, make)


def _working(area: str, *, writes: bool, body: Any = None) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"key": await world.working_key(area, owner)}, body=body)

    return RecordCase(area, writes, make)


def _clear(area: str) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        key = await world.working_key(area, owner)
        return Call(200, query={"prefix": key.removesuffix("/note")})

    return RecordCase(area, True, make)


def _in_each_namespace(*, writes: bool, body: Any = None) -> list[RecordCase]:
    return [_working(area, writes=writes, body=body) for area in WORKING_AREAS]


WORKING_AREAS = (
    "working memory of a session",
    "working memory of a patrol",
    "working memory that nobody opened",
)
_VECTOR = {"vector": [1.0, 0.0]}
_S = "/v1/sessions/{session_id}"
_A = "/v1/agents/{agent_id}"
_T = "/v1/stores/{name}"

RECORDS: dict[str, list[RecordCase]] = {
    "GET /v1/memories/{memory_id}": [_memory(writes=False)],
    "GET /v1/memories/{memory_id}/history": [_memory(writes=False)],
    "PATCH /v1/memories/{memory_id}": [_memory(writes=True, body={"importance": 0.9})],
    "DELETE /v1/memories/{memory_id}": [_memory(writes=True, absent=200)],
    f"GET {_S}": [_session(writes=False)],
    f"DELETE {_S}": [_session(writes=True)],
    f"POST {_S}/turns": [_session(writes=True, body=_TURN)],
    f"POST {_S}/turns/batch": [_session(writes=True, body={"turns": [_TURN]})],
    f"GET {_S}/turns": [_session(writes=False)],
    f"POST {_S}/context": [_session(writes=True, body={"message": "hello"})],
    f"POST {_S}/feedback": [_session(writes=True, body=_SIGNAL)],
    "POST /v1/feedback": [_session_in_body()],
    f"GET {_S}/working-memory": [_session(writes=False)],
    f"GET {_S}/kv": [_session(writes=False)],
    f"PUT {_S}/kv/{{key}}": [_session(writes=True, body={"value": 2}, key="new")],
    f"GET {_S}/kv/{{key}}": [_session(writes=False, key="k")],
    f"DELETE {_S}/kv/{{key}}": [_session(writes=True, key="k")],
    f"POST {_S}/transcript": [_session(writes=True, body=_TURN)],
    f"GET {_S}/transcript": [_session(writes=False)],
    f"GET {_S}/collections": [_session(writes=False)],
    f"PUT {_S}/collections/{{label}}": [_session(writes=True, body=_DOC, label="new")],
    f"GET {_S}/collections/{{label}}": [_session(writes=False, label="c")],
    f"DELETE {_S}/collections/{{label}}": [_session(writes=True, label="c")],
    f"POST {_S}/collections/{{label}}/search": [_session(writes=False, body=_VECTOR, label="c")],
    f"GET {_S}/files": [_session(writes=False)],
    f"GET {_S}/files/{{name}}": [_session(writes=False, name="kv.json")],
    f"POST {_S}/spend": [
        _session(writes=True, body={"usage_id": "u", "model": "m", "usage": {"total_tokens": 1}})
    ],
    f"GET {_S}/spend": [_session(writes=False)],
    f"POST {_S}/observations": [_session(writes=True, body={"kind": "fact", "content": "seen"})],
    f"GET {_S}/observations": [_session(writes=False)],
    "GET /v1/dreams/{run_id}": [_run(writes=False)],
    "GET /v1/dreams/{run_id}/diff": [_run(writes=False)],
    "POST /v1/dreams/{run_id}/undo": [_run(writes=True)],
    f"PUT {_A}": [_agent(writes=True, body={"store_types": ["tmp"]})],
    f"GET {_A}": [_agent(writes=False)],
    f"GET {_A}/kv": [_agent(writes=False)],
    f"PUT {_A}/kv/{{key}}": [_agent(writes=True, body={"value": 2})],
    f"GET {_A}/kv/{{key}}": [_agent(writes=False)],
    f"DELETE {_A}/kv/{{key}}": [_agent(writes=True)],
    f"POST {_A}/texts": [_agent(writes=True, body={"content": "t"})],
    f"GET {_A}/texts": [_agent(writes=False)],
    f"PUT {_A}/texts": [_agent(writes=True, body={"texts": []})],
    f"DELETE {_A}/texts": [_agent(writes=True)],
    f"GET {_A}/texts/{{text_id}}": [_agent(writes=False)],
    f"DELETE {_A}/texts/{{text_id}}": [_agent(writes=True)],
    f"GET {_A}/files": [_agent(writes=False)],
    f"PUT {_A}/files/{{name}}": [_agent(writes=True, content=b"g")],
    f"GET {_A}/files/{{name}}": [_agent(writes=False)],
    f"DELETE {_A}/files/{{name}}": [_agent(writes=True)],
    f"GET {_T}": [_store(writes=False)],
    f"DELETE {_T}": [_store(writes=True)],
    f"GET {_T}/kv": [_store(writes=False)],
    f"PUT {_T}/kv/{{key}}": [_store(writes=True, body={"value": 2}, key="new")],
    f"GET {_T}/kv/{{key}}": [_store(writes=False, key="k")],
    f"DELETE {_T}/kv/{{key}}": [_store(writes=True, key="k")],
    f"GET {_T}/collections": [_store(writes=False)],
    f"PUT {_T}/collections/{{label}}": [_store(writes=True, body=_DOC, label="new")],
    f"GET {_T}/collections/{{label}}": [_store(writes=False, label="c")],
    f"DELETE {_T}/collections/{{label}}": [_store(writes=True, label="c")],
    f"POST {_T}/collections/{{label}}/search": [_store(writes=False, body=_VECTOR, label="c")],
    "PUT /v1/working/{key}": _in_each_namespace(writes=True, body={"value": "changed"}),
    "GET /v1/working/{key}": _in_each_namespace(writes=False),
    "DELETE /v1/working/{key}": _in_each_namespace(writes=True),
    "DELETE /v1/working": [_clear(area) for area in WORKING_AREAS],
    "GET /v1/directives": [_tenant(writes=False)],
    "GET /v1/directives/{name}": [_tenant(writes=False, name="memory-rules")],
    "GET /v1/directives/{name}/history": [_tenant(writes=False, name="memory-rules")],
    "PUT /v1/directives/{name}": [_tenant(writes=True, body={"text": "mine"}, name="memory-rules")],
    "GET /v1/prices": [_tenant(writes=False)],
    "PUT /v1/prices/{model}": [_tenant(writes=True, body={"input": 1}, model="m")],
    "DELETE /v1/prices/{model}": [_tenant(writes=True, model="m")],
    "GET /v1/budgets": [_tenant(writes=False)],
    "GET /v1/budgets/{scope}": [RecordCase("budget", False, _budget)],
    "PUT /v1/budgets/{scope}": [
        _tenant(writes=True, body={"period": "day", "limit_tokens": 10**9}, scope="agent/inn")
    ],
    "DELETE /v1/budgets/{scope}": [_tenant(writes=True, scope="agent/unused")],
    "GET /v1/status": [_tenant(writes=False)],
}

SCOPES: dict[str, ScopeCase] = {
    "POST /v1/memories": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "POST /v1/memories/batch": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "POST /v1/memories/import": ScopeCase("memory", False, lambda: {"content": new_name()}),
    "POST /v1/sessions": ScopeCase("session", True, lambda: {"id": new_name()}),
    "POST /v1/dreams": ScopeCase("session", True, lambda: {"dry_run": True}),
}

LISTS: dict[str, ListCase] = {
    "GET /v1/memories": ListCase("memory", query={"limit": "100"}),
    "GET /v1/memories/export": ListCase("memory"),
    "GET /v1/memories/categories": ListCase("memory"),
    "GET /v1/memories/tags": ListCase("memory"),
    "POST /v1/memories/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "GET /v1/sessions": ListCase("session", query={"limit": "100"}),
    # A recall shows what was said in sessions without a user, as it shows common memories.
    "POST /v1/turns/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "POST /v1/observations/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "GET /v1/feedback": ListCase("session", query={"limit": "100"}),
    "GET /v1/spend": ListCase("session", query={"group_by": "session"}),
    "GET /v1/dreams": ListCase("session", query={"limit": "100"}, has_words=False),
}

# Working memory is listed for the whole tenant; its test is one of its own.
WORKING_LISTS = {"GET /v1/working", "POST /v1/working/search"}
# Erasing a user has a test of its own, because nothing is left of what it has erased.
ERASURES = {"DELETE /v1/users/{user_id}"}
# These need no key.
WITHOUT_KEY = {"GET /healthz", "GET /readyz", "GET /metrics"}


def scope_call(route: str, case: ScopeCase, named: dict[str, str]) -> Call:
    """Return the request of a `ScopeCase` that names these of agent and user."""
    fields = case.fields()
    if route == "POST /v1/memories/import":
        return Call(200, query=named, content=to_lines(fields))
    body = fields | named
    return Call(200, body={"memories": [body]} if route.endswith("/batch") else body)
