"""The requests of bound keys: for each route of the OpenAPI document, one that names a record of an owner.

A route without a case fails `test_rights.py`. `RECORDS` are routes to one record, which a path or a body
names. `SCOPES` name an agent and a user instead. `LISTS` show the records that a key may read.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from tests.isolation.cases import FORM, Call, form
from tests.isolation.rights_table import Owner
from tests.isolation.rights_world import (
    PLAYBOOK,
    World,
    entity_line,
    new_name,
    preference_of,
    to_lines,
    triple_of,
)
from tests.skill_archives import zip_of_skill

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


def uses_up(route: str, case: RecordCase) -> bool:
    """Return whether a write needs a record that no other request asks for.

    What a session or a store is only added to can be asked for again; making another takes five requests.
    """
    lasts = case.area in {"session", "store", *WORKING_AREAS}
    return not lasts or route.startswith("DELETE") or route.endswith(("/pop", "/promote", "/{label}"))


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


def _mined_session() -> RecordCase:
    """Mine a session whose scope has a run, which is joined: another would be in the way of other cases."""

    async def make(world: World, owner: Owner) -> Call:
        await world.run(owner)
        return Call(200, {"session_id": await world.session(owner)})

    return RecordCase("session", True, make)


def _playbook(*, writes: bool, absent: int = 404) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"playbook_id": await world.playbook(owner)})

    return RecordCase("playbook", writes, make, absent)


def _entity(*, writes: bool, absent: int = 404) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"entity_id": await world.entity(owner)})

    return RecordCase("entity", writes, make, absent)


def _triple(*, writes: bool, body: Any = None, absent: int = 404, is_over: bool = False) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"triple_id": await world.triple(owner, is_over=is_over)}, body=body)

    return RecordCase("triple", writes, make, absent)


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


def _key(*, writes: bool) -> RecordCase:
    """Ask for a memory by its key. The request names the owner, so another's is refused."""

    async def make(world: World, owner: Owner) -> Call:
        return Call(200, query={"key": await world.key(owner), **owner.scope()})

    return RecordCase("key", writes, make)


async def _business_context(world: World, owner: Owner) -> Call:
    del owner
    version = (await world.client.get("/v1/business-context")).headers["etag"]
    return Call(200, body={"content": new_name()}, headers={"if-match": version})


def _document(*, writes: bool) -> RecordCase:
    async def make(world: World, owner: Owner) -> Call:
        del owner
        return Call(200, {"document_id": await world.document()})

    return RecordCase("tenant", writes, make)


async def _upload(world: World, owner: Owner) -> Call:
    del world, owner
    return Call(202, content=form(file=new_name()), headers=FORM)


async def _budget(world: World, owner: Owner) -> Call:
    scope = f"agent/{owner.agent_id}"
    await world.succeed("PUT", f"/v1/budgets/{scope}", json={"period": "day", "limit_tokens": 10**9})
    return Call(200, {"scope": scope})


def _store(*, writes: bool, body: Any = None, **path: str) -> RecordCase:
    """Ask for a scratch store that only its owner may name, because the request names the owner."""

    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {**path, "name": await world.store(owner)}, owner.scope(), body)

    return RecordCase("store", writes, make)


def _pinned(*, writes: bool) -> RecordCase:
    """Ask for a pinned text. The request names its owner, and a user's key reads the agent's text too."""

    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"name": await world.pinned_text(owner)}, owner.scope())

    return RecordCase("pinned text", writes, make)


def _preference(*, writes: bool) -> RecordCase:
    """Ask for a preference. The request names its owner, as with a pinned text."""

    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"key": await world.preference(owner)}, owner.scope())

    return RecordCase("preference", writes, make)


def _skill(*, writes: bool, **path: str) -> RecordCase:
    """Ask for a skill. The request names its owner, as with a pinned text."""

    async def make(world: World, owner: Owner) -> Call:
        return Call(200, {"skill": await world.skill(owner), **path}, owner.scope())

    return RecordCase("skill", writes, make)


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
_NAMED = {"field": "metadata.name", "op": "eq", "value": "nobody"}
_VECTOR = {"vector": [1.0, 0.0]}
_S = "/v1/sessions/{session_id}"
_A = "/v1/agents/{agent_id}"
_T = "/v1/stores/{name}"

RECORDS: dict[str, list[RecordCase]] = {
    "GET /v1/memories/{memory_id}": [_memory(writes=False)],
    "GET /v1/memories/{memory_id}/history": [_memory(writes=False)],
    "PATCH /v1/memories/{memory_id}": [_memory(writes=True, body={"importance": 0.9})],
    "DELETE /v1/memories/{memory_id}": [_memory(writes=True, absent=200)],
    "POST /v1/memories/{memory_id}/archive": [_memory(writes=True)],
    "POST /v1/memories/{memory_id}/restore": [_memory(writes=True)],
    "POST /v1/memories/{memory_id}/revert": [_memory(writes=True, body={"version": 1})],
    # 409: without a language model nothing is enriched.
    "POST /v1/memories/{memory_id}/enrich": [_memory(writes=True)],
    "GET /v1/memories/by-key": [_key(writes=False)],
    "DELETE /v1/memories/by-key": [_key(writes=True)],
    f"GET {_S}": [_session(writes=False)],
    f"PATCH {_S}": [_session(writes=True, body={"metadata": {"topic": "changed"}})],
    f"DELETE {_S}": [_session(writes=True)],
    f"POST {_S}/turns": [_session(writes=True, body=_TURN)],
    f"POST {_S}/turns/batch": [_session(writes=True, body={"turns": [_TURN]})],
    f"GET {_S}/turns": [_session(writes=False)],
    f"DELETE {_S}/turns": [_session(writes=True)],
    f"POST {_S}/turns/pop": [_session(writes=True)],
    # 409: without a user, turns are mined only where the agent says so.
    f"POST {_S}/mine": [_mined_session()],
    f"GET {_S}/turns/{{seq}}": [_session(writes=False, seq="1")],
    f"PATCH {_S}/turns/{{seq}}": [_session(writes=True, body={"content": "edited"}, seq="1")],
    f"DELETE {_S}/turns/{{seq}}": [_session(writes=True, seq="1")],
    f"GET {_S}/turns/export": [_session(writes=False)],
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
    f"POST {_S}/scratchpad": [_session(writes=True, body={"content": "noted"})],
    f"GET {_S}/scratchpad": [_session(writes=False)],
    f"POST {_S}/scratchpad/promote": [_session(writes=True, body={"reason": "asked"})],
    f"GET {_S}/scratchpad/promotions": [_session(writes=False)],
    f"POST {_S}/report": [_session(writes=True, body={"title": "t", "content": "found"})],
    "GET /v1/playbooks/{playbook_id}": [_playbook(writes=False)],
    "DELETE /v1/playbooks/{playbook_id}": [_playbook(writes=True, absent=200)],
    "GET /v1/graph/entities/{entity_id}": [_entity(writes=False)],
    "DELETE /v1/graph/entities/{entity_id}": [_entity(writes=True, absent=200)],
    "GET /v1/graph/triples/{triple_id}": [_triple(writes=False)],
    "DELETE /v1/graph/triples/{triple_id}": [_triple(writes=True, absent=200)],
    "POST /v1/graph/triples/{triple_id}/invalidate": [_triple(writes=True, body={"reason": "over"})],
    "POST /v1/graph/triples/{triple_id}/restore": [_triple(writes=True, is_over=True)],
    "GET /v1/patterns": [_tenant(writes=False)],
    "GET /v1/patterns/consent": [_tenant(writes=False)],
    "PUT /v1/patterns/consent": [_tenant(writes=True, body={"consent": True})],
    "POST /v1/documents": [RecordCase("tenant", True, _upload)],
    "GET /v1/documents": [_tenant(writes=False)],
    "GET /v1/documents/{document_id}": [_document(writes=False)],
    "DELETE /v1/documents/{document_id}": [_document(writes=True)],
    "POST /v1/documents/search": [_tenant(writes=False, body={"query": "a word"})],
    "GET /v1/business-context": [_tenant(writes=False)],
    "PUT /v1/business-context": [RecordCase("tenant", True, _business_context)],
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
    "PATCH /v1/working/{key}": _in_each_namespace(writes=True, body={"append": "changed"}),
    "DELETE /v1/working/{key}": _in_each_namespace(writes=True),
    "DELETE /v1/working": [_clear(area) for area in WORKING_AREAS],
    "GET /v1/pinned/{name}": [_pinned(writes=False)],
    "DELETE /v1/pinned/{name}": [_pinned(writes=True)],
    "GET /v1/skills/{skill}": [_skill(writes=False)],
    "GET /v1/skills/{skill}/versions": [_skill(writes=False)],
    "GET /v1/skills/{skill}/export": [_skill(writes=False)],
    "GET /v1/skills/{skill}/files/{path}": [_skill(writes=False, path="note.txt")],
    "DELETE /v1/skills/{skill}": [_skill(writes=True)],
    "GET /v1/preferences/{key}": [_preference(writes=False)],
    "DELETE /v1/preferences/{key}": [_preference(writes=True)],
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
    "PUT /v1/memories/by-key": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "POST /v1/memories/delete": ScopeCase("memory", True, lambda: {"filter": dict(_NAMED)}),
    "POST /v1/memories/import": ScopeCase("memory", False, lambda: {"content": new_name()}),
    "POST /v1/import": ScopeCase("memory", False, lambda: {"content": new_name()}),
    "POST /v1/sessions": ScopeCase("session", True, lambda: {"id": new_name()}),
    "PUT /v1/pinned/{name}": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "PUT /v1/preferences/{key}": ScopeCase("memory", True, lambda: preference_of(new_name())),
    "PUT /v1/skills/{skill}": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "POST /v1/skills/import": ScopeCase("memory", False, lambda: {"name": new_name().lower()}),
    "POST /v1/playbooks": ScopeCase("memory", True, lambda: {**PLAYBOOK, "flow_dact": new_name()}),
    "POST /v1/graph/entities": ScopeCase("memory", True, lambda: {"name": new_name()}),
    "POST /v1/graph/triples": ScopeCase("memory", True, lambda: triple_of(new_name())),
    "POST /v1/graph/import": ScopeCase("memory", False, entity_line),
    "POST /v1/dreams": ScopeCase("session", True, lambda: {"dry_run": True}),
}

LISTS: dict[str, ListCase] = {
    "GET /v1/memories": ListCase("memory", query={"limit": "100"}),
    "GET /v1/memories/export": ListCase("memory"),
    "GET /v1/export": ListCase("memory"),
    "GET /v1/memories/categories": ListCase("memory"),
    "GET /v1/memories/tags": ListCase("memory"),
    "GET /v1/namespaces": ListCase("memory"),
    "POST /v1/memories/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "GET /v1/playbooks": ListCase("memory", query={"limit": "100"}),
    "POST /v1/playbooks/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "GET /v1/graph/entities": ListCase("memory", query={"limit": "100"}),
    "GET /v1/graph/triples": ListCase("memory", query={"limit": "100"}),
    "POST /v1/graph/match": ListCase("memory", {"text": "What of the common word?"}),
    "POST /v1/graph/traverse": ListCase("memory", {"entity": "common word", "limit": 100}),
    "GET /v1/graph/export": ListCase("memory"),
    "GET /v1/pinned": ListCase("memory", query={"limit": "100"}),
    "GET /v1/skills": ListCase("memory", query={"limit": "100"}),
    "POST /v1/skills/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "GET /v1/preferences": ListCase("memory", query={"limit": "100"}),
    "POST /v1/preferences/resolve": ListCase("memory", {"flow": "words", "situation": "the word"}),
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
# Users and agents are listed by their ids; their test is one of its own.
SUBJECT_LISTS = {"GET /v1/users", "GET /v1/agents"}
# Erasing has tests of its own, because nothing is left of what was erased.
ERASURES = {
    "DELETE /v1/users/{user_id}",
    "DELETE /v1/agents/{agent_id}",
    "GET /v1/erasures/{erasure_id}",
}
# Only dreams make proposals: `integration/skills/test_skill_proposals.py` asks for them with bound keys.
PROPOSALS = {"GET /v1/skills/proposals", "POST /v1/skills/proposals/{proposal_id}"}
# An operation of a batch is refused what a request of its own is: a test sends all of RECORDS both ways.
BATCHES = {"POST /v1/batch"}
# Tools have cases of their own, in tool_cases.py.
TOOLS = {"GET /v1/tools", "POST /v1/tools/{name}"}
# These need no key.
WITHOUT_KEY = {"GET /healthz", "GET /readyz", "GET /metrics"}


_NAMED_BY_PATH = {
    "PUT /v1/pinned/{name}": "name",
    "PUT /v1/skills/{skill}": "skill",
    "PUT /v1/preferences/{key}": "key",
}


def scope_call(route: str, case: ScopeCase, named: dict[str, str]) -> Call:
    """Return the request of a `ScopeCase` that names these of agent and user."""
    fields = case.fields()
    if route == "POST /v1/skills/import":
        return Call(201, query=named, content=zip_of_skill(fields["name"]))
    if route.endswith("/import"):
        return Call(200, query=named, content=to_lines(fields))
    body = fields | named
    if route == "PUT /v1/memories/by-key":
        return Call(200, query={"key": new_name()}, body=body)
    if route in _NAMED_BY_PATH:
        return Call(200, {_NAMED_BY_PATH[route]: new_name().lower()}, body=body)
    return Call(200, body={"memories": [body]} if route.endswith("/batch") else body)
