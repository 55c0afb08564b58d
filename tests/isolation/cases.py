"""The requests that another tenant sends with foreign ids: one case per route of the OpenAPI document.

A call names the status that it expects for a tenant without records. `CASES` must name every route,
or a test fails.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.isolation import foreign_tool_calls
from tests.isolation.ids import Ids
from tests.skill_archives import zip_of_skill


@dataclass(frozen=True)
class Call:
    """One request to the route of a case."""

    status: int
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


# The owner sends it with an idempotency key; then other tenants send it with the same key.
_PREFERENCE = {"condition": {"flow": "mine"}, "effect": {"slot": "mine", "value": "mine"}}
MESSAGE = {"message": "the gate", "explain": True}

Case = Callable[[Ids], list[Call]]


def _scope(ids: Ids) -> dict[str, str]:
    return {"agent_id": ids.agent, "user_id": ids.user}


def _key(ids: Ids) -> dict[str, str]:
    return {"idempotency-key": ids.idempotency_key}


def _of_memory(status: int) -> Case:
    return lambda ids: [Call(status, {"memory_id": memory_id}) for memory_id in (ids.memory, ids.archived)]


def _by_key(status: int, body: Any = None) -> Case:
    return lambda ids: [
        Call(status, query={"namespace": ids.namespace, "key": ids.session, **_scope(ids)}, body=body)
    ]


def _list_namespaces(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [{}, {"prefix": "session/*"}, {"max_depth": "1"}]
    return [Call(200, query=_scope(ids) | query) for query in queries] + [Call(200)]


def _of_scope(ids: Ids) -> list[Call]:
    return [Call(200, query=_scope(ids)), Call(200, query={"agent_id": ids.agent}), Call(200)]


def _list_memories(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [
        {},
        {"cursor": ids.cursor},
        {"state": "archived"},
        {"state": "pending"},
        {"limit": "100"},
    ]
    return [Call(200, query=_scope(ids) | query) for query in queries] + [Call(200)]


def _save(ids: Ids) -> list[Call]:
    memory = {"content": ids.content, **_scope(ids)}
    source = {"session_id": ids.session, "seq": 1}
    return [
        Call(201, body=memory, headers=_key(ids)),
        Call(201, body=memory | {"tags": ["mine"], "source": source}),
    ]


def _save_batch(ids: Ids) -> list[Call]:
    body = {"memories": [{"content": ids.content, **_scope(ids)}]}
    return [Call(201, body=body, headers=_key(ids)), Call(201, body=body)]


def _search_memories(ids: Ids) -> list[Call]:
    bodies: list[dict[str, Any]] = [
        {"query": ids.content},
        {"query": ids.content, "explain": True, "strategy": "mean"},
        {"query": "letters gate raw enriched pending said"},
        {"state": "archived"},
        {},
    ]
    return [Call(200, body=_scope(ids) | body) for body in bodies]


def _import_lines(ids: Ids) -> list[Call]:
    lines = [
        {"id": ids.memory, "content": "a line of mine", "superseded_by": [ids.archived]},
        {"id": ids.archived, "content": ids.content, "derived_from": [ids.memory]},
    ]
    content = "\n".join(json.dumps(line) for line in lines).encode()
    restore = _scope(ids) | {"restore": "true"}
    return [Call(200, query=_scope(ids), content=content), Call(200, query=restore, content=content)]


def _import_every_kind(ids: Ids) -> list[Call]:
    """Import rows under the ids of foreign ones: those of a session that is not there are refused."""
    turn = {"kind": "turn", "session_id": ids.session, "seq": 1, "role": "user", "content": "mine"}
    key = {"kind": "state_key", "owner_kind": "session", "owner_id": ids.session, "key": "k", "value": "1"}
    text = {"kind": "agent_text", "id": ids.text, "content": "mine", "metadata": {}}
    memory = {"kind": "memory", "id": ids.memory, "content": ids.content}
    session = {"kind": "session", "id": ids.session, "session_kind": "session", "store_types": ["tmp"]}
    lines = [turn, key | {"version": 1}, text, memory, session, turn]
    content = "\n".join(json.dumps(line) for line in lines).encode()
    of_agent = json.dumps(text).encode()
    return [
        Call(200, query=_scope(ids), content=content),
        Call(200, query={"agent_id": ids.agent}, content=of_agent),
    ]


def _update(ids: Ids) -> list[Call]:
    bodies = ({"content": "taken over"}, {"importance": 0.1}, {"content": ids.content, "tags": ["taken"]})
    return [
        Call(404, {"memory_id": memory_id}, body=body)
        for memory_id in (ids.memory, ids.archived)
        for body in bodies
    ]


def _working_entry(status: int, body: Any = None) -> Case:
    def calls(ids: Ids) -> list[Call]:
        keys = (ids.working_key, f"patrol/{ids.patrol}/findings", f"subagent/{ids.patrol}/report")
        full_keys = [Call(status, {"key": key}, body=body) for key in keys]
        relative_key = Call(status, {"key": "letters"}, {"namespace": ids.namespace}, body=body)
        return [*full_keys, relative_key]

    return calls


def _read_working_entry(ids: Ids) -> list[Call]:
    chunk_keys = [f"subagent/{ids.patrol}/report-index", f"subagent/{ids.patrol}/report-chunk0"]
    full_value = Call(404, {"key": ids.working_key}, {"full": "true"})
    return [*_working_entry(404)(ids), full_value, *(Call(404, {"key": key}) for key in chunk_keys)]


def _each_prefix(ids: Ids) -> list[Call]:
    queries = (
        {"prefix": prefix} for prefix in (ids.namespace, ids.working_key, "session", "patrol", "subagent")
    )
    return [Call(200, query=query) for query in queries]


def _list_working_entries(ids: Ids) -> list[Call]:
    return [Call(200), Call(200, query={"namespace": ids.namespace}), *_each_prefix(ids)]


def _search_working_entries(ids: Ids) -> list[Call]:
    bodies: list[dict[str, str]] = [
        {"query": "letters"},
        {"query": "letters", "prefix": ids.namespace},
        {},
        {"prefix": "patrol"},
    ]
    return [Call(200, body=body) for body in bodies]


def _open_session(ids: Ids) -> list[Call]:
    session = {"id": ids.session, **_scope(ids)}
    patrol = {"id": f"patrol-{ids.session}", "kind": "patrol", "name": ids.patrol, **_scope(ids)}
    return [Call(201, body=session, headers=_key(ids)), Call(201, body=session), Call(201, body=patrol)]


def _list_sessions(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [
        {},
        _scope(ids),
        {"kind": "patrol"},
        {"cursor": ids.session_cursor},
        {"user_id": ids.user},
        {"metadata": "topic=letters", "created_after": "2020-01-01T00:00:00Z"},
    ]
    return [Call(200, query=query) for query in queries]


def _in_session(status: int, body: Any = None, *, keyed: bool = False) -> Case:
    def calls(ids: Ids) -> list[Call]:
        path = {"session_id": ids.session}
        return [
            Call(status, path, body=body, headers=_key(ids) if keyed else {}),
            Call(status, {"session_id": f"patrol-{ids.session}"}, body=body),
        ]

    return calls


def _search_turns(ids: Ids) -> list[Call]:
    after = {"created_after": "2020-01-01T00:00:00Z"}
    bodies: list[dict[str, Any]] = [{}, {"session_id": ids.session}, {"explain": True}, after]
    return [Call(200, body={"query": "what of the gate said", **_scope(ids), **body}) for body in bodies]


def _report(ids: Ids) -> list[Call]:
    return [Call(404, body={"session_id": ids.session, **_SIGNAL}, headers=_key(ids))]


def _list_signals(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [{}, _scope(ids), {"session_id": ids.session}, {"days": "3660"}]
    return [Call(200, query=query) for query in queries]


def _of_directive(ids: Ids) -> list[Call]:
    del ids  # directives have the same names for every tenant
    return [Call(200, {"name": "memory-rules"})]


def _of_run(ids: Ids) -> list[Call]:
    return [Call(404, {"run_id": ids.run})]


def _search_observations(ids: Ids) -> list[Call]:
    bodies: list[dict[str, Any]] = [{}, {"session_id": ids.session}, {"explain": True}, {"kind": "fact"}]
    return [Call(200, body={"query": "what was observed", **_scope(ids), **body}) for body in bodies]


def _of_agent(status: int, body: Any = None, *, keyed: bool = False, **path: str) -> Case:
    """Ask for records of an agent. A value in `path` is the name of a field of `Ids`, or taken as it is."""

    def calls(ids: Ids) -> list[Call]:
        parameters = {name: getattr(ids, value, value) for name, value in path.items()}
        return [
            Call(status, {"agent_id": ids.agent, **parameters}, body=body, headers=_key(ids) if keyed else {})
        ]

    return calls


def _put_file(ids: Ids) -> list[Call]:
    return [Call(200, {"agent_id": ids.agent, "name": ids.patrol}, content=b"mine")]


def _of_state(status: int, body: Any = None, **path: str) -> Case:
    """Ask for the state of a `basic_session` and a `tmp` session. In `path`, `patrol` stands for the name."""

    def calls(ids: Ids) -> list[Call]:
        parameters = {name: word.replace("patrol", ids.patrol) for name, word in path.items()}
        session_ids = (ids.session, f"patrol-{ids.session}")
        return [
            Call(status, {"session_id": session_id, **parameters}, body=body) for session_id in session_ids
        ]

    return calls


def _write_scratch(body: Any, **path: str) -> Case:
    """Write as one scope: the name would be taken for the others."""
    return lambda ids: _of_scratch(200, body, **path)(ids)[:1]


def _of_scratch(status: int, body: Any = None, **path: str) -> Case:
    def calls(ids: Ids) -> list[Call]:
        parameters = {
            "name": ids.patrol,
            **{name: word.replace("patrol", ids.patrol) for name, word in path.items()},
        }
        return [Call(status, parameters, query, body) for query in (_scope(ids), {"agent_id": ids.agent}, {})]

    return calls


def _playbook(ids: Ids) -> list[Call]:
    body = {**_PLAYBOOK, "user_query": ids.content, **_scope(ids)}
    in_session = {**_PLAYBOOK, "session_id": ids.session}
    return [Call(201, body=body, headers=_key(ids)), Call(201, body=body), Call(404, body=in_session)]


def _list_playbooks(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [{}, {"flow": "letters"}, {"promoted": "true"}]
    return [Call(200, query=_scope(ids) | query) for query in queries] + [Call(200)]


def _search_playbooks(ids: Ids) -> list[Call]:
    bodies: list[dict[str, str]] = [{"flow": "letters"}, {"query": ids.content}]
    bodies.append({"flow": "letters", "query": ids.content})
    return [
        *(Call(200, body=_scope(ids) | body) for body in bodies),
        Call(404, body={"query": ids.content, "session_id": ids.session}),
    ]


def _of_playbook(status: int) -> Case:
    return lambda ids: [Call(status, {"playbook_id": ids.playbook})]


def _of_skill(status: int, **path: str) -> Case:
    return lambda ids: [Call(status, {"skill": ids.patrol, **path}, _scope(ids))]


def _save_entity(ids: Ids) -> list[Call]:
    body = {"name": "slipped in", **_scope(ids)}
    return [Call(201, body=body, headers=_key(ids)), Call(201, body=body)]


def _save_triple(ids: Ids) -> list[Call]:
    body = {"subject": "slipped in", "predicate": "is", **_scope(ids)}
    source = {"source": {"session_id": ids.session, "seq": 1}}
    return [
        Call(201, body=body | source | {"literal": "mine"}, headers=_key(ids)),
        # The id of an entity that is not there.
        Call(422, body=body | {"object": ids.entity}),
    ]


def _traverse(ids: Ids) -> list[Call]:
    return [Call(404, body={"entity": ids.entity, **_scope(ids)}), Call(404, body={"names": [ids.entity]})]


def _of_entity(status: int) -> Case:
    return lambda ids: [Call(status, {"entity_id": ids.entity})]


def _of_triple(status: int, body: Any = None) -> Case:
    return lambda ids: [Call(status, {"triple_id": ids.triple}, body=body)]


def _import_graph(ids: Ids) -> list[Call]:
    """Import an entity under the id of a foreign one."""
    line = {"kind": "graph_entity", "id": ids.entity, "name": "slipped in", "type": "Topic"}
    content = json.dumps(line | {"created_at": "2026-01-01T00:00:00Z"}).encode()
    return [Call(200, query=_scope(ids), content=content)]


FORM = {"content-type": "multipart/form-data; boundary=b"}


def form(**parts: str) -> bytes:
    """Return the body of an upload. `file` is the content of a text file."""
    texts = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"'
        f"{'; filename=mine.txt' if name == 'file' else ''}\r\n\r\n{text}\r\n"
        for name, text in parts.items()
    ]
    return ("".join(texts) + "--b--\r\n").encode()


def _upload(_: Ids) -> list[Call]:
    content = form(title="mine", source="mine", file="This text is mine.")
    return [Call(202, content=content, headers=FORM)]


def _of_document(status: int) -> Case:
    return lambda ids: [Call(status, {"document_id": ids.document})]


def _search_documents(ids: Ids) -> list[Call]:
    return [Call(200, body={"query": text}) for text in ("gate opens at seven", ids.content)]


def _without_ids(_: Ids) -> list[Call]:
    return [Call(200)]


def _report_spend(ids: Ids) -> list[Call]:
    usage = {"usage_id": "slipped-in", "model": "m", "usage": {"total_tokens": 7}}
    return _in_session(404, usage, keyed=True)(ids)


def _spend(ids: Ids) -> list[Call]:
    by_all = {"group_by": "agent,session,user,purpose,model,day"}
    queries: tuple[dict[str, str], ...] = (
        {},
        by_all,
        by_all | {"format": "csv"},
        {"session_id": ids.session},
        _scope(ids),
    )
    return [Call(200, query=query) for query in queries]


def _of_budget(status: int, body: Any = None) -> Case:
    def calls(ids: Ids) -> list[Call]:
        return [Call(status, {"scope": scope}, body=body) for scope in (f"agent/{ids.agent}", "tenant")]

    return calls


_LIMIT = {"period": "day", "limit_usd": 1}
_SIGNAL = {"type": "UserThumbsUp", "summary": "slipped in"}
_TURN = {"role": "user", "content": "slipped in"}
_ENTRY = {"role": "user", "content": "slipped in"}
_VALUE = {"value": "slipped in"}
_DOC = {"type": "doc", "value": {"slipped": "in"}}
_VECTOR = {"vector": [1.0, 0.0]}
_EVERYTHING = {"field": "importance", "op": "gte", "value": 0}
_OBSERVATION = {"kind": "fact", "content": "slipped in"}
_PLAYBOOK = {
    "flow_dact": "letters",
    "slots": {"to": "mine"},
    "tool_calls": [{"tool_id": "post.send", "parameters": {"to": "mine"}}],
    "outcome": "success",
    "user_query": "send a letter of mine",
}
_REPORT = {"title": "slipped in", "content": "slipped in"}


def _batch(ids: Ids) -> list[Call]:
    memory, session = f"/v1/memories/{ids.memory}", f"/v1/sessions/{ids.session}"
    operations: list[dict[str, Any]] = [
        {"method": "GET", "path": memory},
        {"method": "PATCH", "path": memory, "body": {"content": "taken over"}},
        {"method": "DELETE", "path": memory},
        {"method": "GET", "path": f"{session}/turns"},
        {"method": "POST", "path": f"{session}/turns", "body": _TURN},
        {"method": "GET", "path": f"/v1/memories?agent_id={ids.agent}&user_id={ids.user}"},
    ]
    return [Call(200, body={"operations": operations}, headers=_key(ids))]


def _call_tools(ids: Ids) -> list[Call]:
    """Call every tool with these ids, with and without headers that name a scope and a session of them."""
    return [
        Call(200, {"name": name}, body={"arguments": arguments}, headers=_key(ids) | headers)
        for name, of_ids in foreign_tool_calls.ARGUMENTS.items()
        for arguments in of_ids(ids)
        for headers in foreign_tool_calls.headers_of(ids)
    ]


def _list_tools(ids: Ids) -> list[Call]:
    return [
        Call(200, query={"set": "all", "style": "mcp"}, headers=headers)
        for headers in foreign_tool_calls.headers_of(ids)
    ]


# These responses belong to the whole tenant or to the product. They are not empty for another tenant,
# and a bound key of the same tenant may read them.
SHARED_RESPONSES = {
    "GET /v1/tools",
    "GET /v1/business-context",
    "GET /v1/prices",
    "GET /v1/directives",
    "GET /v1/directives/{name}",
    "GET /v1/directives/{name}/history",
}
# A bound key of the same tenant may read these too: documents belong to the whole tenant.
SHARED_IN_TENANT = SHARED_RESPONSES | {
    "GET /v1/documents",
    "GET /v1/documents/{document_id}",
    "POST /v1/documents/search",
}

SHARED_TOOLS = {"search_business_context"}

CASES: dict[str, Case] = {
    "GET /v1/tools": _list_tools,
    "POST /v1/tools/{name}": _call_tools,
    "GET /v1/pinned": _of_scope,
    "PUT /v1/pinned/{name}": lambda ids: [
        Call(200, {"name": ids.patrol}, body={"content": "mine", **_scope(ids)})
    ],
    "GET /v1/pinned/{name}": lambda ids: [Call(404, {"name": ids.patrol}, _scope(ids))],
    "DELETE /v1/pinned/{name}": lambda ids: [Call(200, {"name": ids.patrol}, _scope(ids))],
    "GET /v1/preferences": _of_scope,
    "PUT /v1/preferences/{key}": lambda ids: [
        Call(200, {"key": ids.patrol}, body={**_PREFERENCE, **_scope(ids)})
    ],
    "GET /v1/preferences/{key}": lambda ids: [Call(404, {"key": ids.patrol}, _scope(ids))],
    "DELETE /v1/preferences/{key}": lambda ids: [Call(200, {"key": ids.patrol}, _scope(ids))],
    "POST /v1/preferences/resolve": lambda ids: [
        Call(200, body={"flow": ids.patrol, "situation": "the gate", **_scope(ids)})
    ],
    "GET /v1/skills": _of_scope,
    "PUT /v1/skills/{skill}": lambda ids: [
        Call(200, {"skill": ids.patrol}, body={"content": "mine", "summary": "mine", **_scope(ids)})
    ],
    "GET /v1/skills/{skill}": _of_skill(404),
    "DELETE /v1/skills/{skill}": _of_skill(200),
    "GET /v1/skills/{skill}/versions": _of_skill(404),
    "GET /v1/skills/{skill}/export": _of_skill(404),
    "GET /v1/skills/{skill}/files/{path}": _of_skill(404, path="note.txt"),
    "GET /v1/skills/proposals": _of_scope,
    "POST /v1/skills/proposals/{proposal_id}": lambda ids: [
        Call(404, {"proposal_id": ids.document}, body={"decision": "publish"})
    ],
    "POST /v1/skills/search": lambda ids: [Call(200, body={"query": "how it opens", **_scope(ids)})],
    "POST /v1/skills/import": lambda ids: [Call(201, query=_scope(ids), content=zip_of_skill(ids.patrol))],
    "POST /v1/playbooks": _playbook,
    "GET /v1/playbooks": _list_playbooks,
    "POST /v1/playbooks/search": _search_playbooks,
    "GET /v1/playbooks/{playbook_id}": _of_playbook(404),
    # Deleting an unknown id is no error.
    "DELETE /v1/playbooks/{playbook_id}": _of_playbook(200),
    "POST /v1/graph/entities": _save_entity,
    "GET /v1/graph/entities": _of_scope,
    "GET /v1/graph/entities/{entity_id}": _of_entity(404),
    "DELETE /v1/graph/entities/{entity_id}": _of_entity(200),
    "POST /v1/graph/triples": _save_triple,
    "GET /v1/graph/triples": lambda ids: [
        Call(200, query=_scope(ids)),
        Call(200, query={"entity_id": ids.entity, "validity": "any"}),
    ],
    "GET /v1/graph/triples/{triple_id}": _of_triple(404),
    "DELETE /v1/graph/triples/{triple_id}": _of_triple(200),
    "POST /v1/graph/triples/{triple_id}/invalidate": _of_triple(404, {"reason": "over"}),
    "POST /v1/graph/triples/{triple_id}/restore": _of_triple(404),
    "POST /v1/graph/match": lambda ids: [Call(200, body={"text": ids.content, **_scope(ids)})],
    "POST /v1/graph/traverse": _traverse,
    "GET /v1/graph/export": _of_scope,
    "POST /v1/graph/import": _import_graph,
    "GET /v1/patterns": lambda _: [Call(200), Call(200, query={"flow": "letters"})],
    "GET /v1/patterns/consent": _without_ids,
    "PUT /v1/patterns/consent": lambda _: [Call(200, body={"consent": True})],
    "POST /v1/documents": _upload,
    "GET /v1/documents": _without_ids,
    "GET /v1/documents/{document_id}": _of_document(404),
    "DELETE /v1/documents/{document_id}": _of_document(200),
    "POST /v1/documents/search": _search_documents,
    "GET /v1/business-context": _without_ids,
    "PUT /v1/business-context": lambda _: [Call(200, body={"content": "mine"}, headers={"if-match": "*"})],
    "POST /v1/sessions/{session_id}/scratchpad": _in_session(404, {"content": "slipped in"}, keyed=True),
    "GET /v1/sessions/{session_id}/scratchpad": _in_session(404),
    "POST /v1/sessions/{session_id}/scratchpad/promote": _in_session(404, {}, keyed=True),
    "GET /v1/sessions/{session_id}/scratchpad/promotions": _in_session(404),
    "POST /v1/sessions/{session_id}/report": _in_session(404, _REPORT, keyed=True),
    "GET /v1/memories/export": _of_scope,
    "POST /v1/memories/import": _import_lines,
    "GET /v1/export": _of_scope,
    "POST /v1/import": _import_every_kind,
    "GET /v1/sessions/{session_id}/turns/export": _in_session(404),
    "POST /v1/memories": _save,
    "GET /v1/memories": _list_memories,
    "POST /v1/memories/batch": _save_batch,
    "POST /v1/memories/search": _search_memories,
    "GET /v1/memories/categories": _of_scope,
    "GET /v1/memories/tags": _of_scope,
    "GET /v1/memories/{memory_id}": _of_memory(404),
    "PATCH /v1/memories/{memory_id}": _update,
    # Deleting an unknown id is no error.
    "DELETE /v1/memories/{memory_id}": _of_memory(200),
    "GET /v1/memories/{memory_id}/history": _of_memory(404),
    "POST /v1/memories/{memory_id}/archive": _of_memory(404),
    "POST /v1/memories/{memory_id}/restore": _of_memory(404),
    "POST /v1/memories/{memory_id}/enrich": _of_memory(404),
    "POST /v1/memories/{memory_id}/revert": lambda ids: [
        Call(404, {"memory_id": memory_id}, body={"version": 1}) for memory_id in (ids.memory, ids.archived)
    ],
    "GET /v1/memories/by-key": _by_key(404),
    "PUT /v1/memories/by-key": _by_key(201, {"content": "a note under a key of mine"}),
    "DELETE /v1/memories/by-key": _by_key(200),
    "GET /v1/namespaces": _list_namespaces,
    "GET /v1/working": _list_working_entries,
    "DELETE /v1/working": _each_prefix,
    "POST /v1/working/search": _search_working_entries,
    "PUT /v1/working/{key}": _working_entry(200, {"value": "mine"}),
    "GET /v1/working/{key}": _read_working_entry,
    "PATCH /v1/working/{key}": _working_entry(404, {"append": "mine"}),
    "DELETE /v1/working/{key}": _working_entry(200),
    "POST /v1/sessions": _open_session,
    "GET /v1/sessions": _list_sessions,
    "POST /v1/sessions/{session_id}/turns/batch": _in_session(404, {"turns": [_TURN]}, keyed=True),
    "POST /v1/sessions/{session_id}/turns": _in_session(404, _TURN, keyed=True),
    "GET /v1/sessions/{session_id}/turns": _in_session(404),
    "DELETE /v1/sessions/{session_id}/turns": _in_session(404),
    "POST /v1/sessions/{session_id}/turns/pop": _in_session(404, keyed=True),
    "POST /v1/sessions/{session_id}/mine": _in_session(404, keyed=True),
    "GET /v1/sessions/{session_id}/turns/{seq}": _of_state(404, seq="1"),
    "PATCH /v1/sessions/{session_id}/turns/{seq}": _of_state(404, {"content": "mine"}, seq="1"),
    "DELETE /v1/sessions/{session_id}/turns/{seq}": _of_state(404, seq="1"),
    "POST /v1/sessions/{session_id}/context": _in_session(404, MESSAGE, keyed=True),
    "GET /v1/sessions/{session_id}": _in_session(404),
    "PATCH /v1/sessions/{session_id}": _in_session(404, {"metadata": {"slipped": "in"}}),
    "DELETE /v1/sessions/{session_id}": _in_session(404),
    "POST /v1/turns/search": _search_turns,
    "POST /v1/sessions/{session_id}/feedback": _in_session(404, _SIGNAL, keyed=True),
    "POST /v1/feedback": _report,
    "GET /v1/feedback": _list_signals,
    "GET /v1/sessions/{session_id}/working-memory": _of_state(404),
    "GET /v1/sessions/{session_id}/kv": _of_state(404),
    "PUT /v1/sessions/{session_id}/kv/{key}": _of_state(404, _VALUE, key="patrol"),
    "GET /v1/sessions/{session_id}/kv/{key}": _of_state(404, key="patrol"),
    "DELETE /v1/sessions/{session_id}/kv/{key}": _of_state(404, key="patrol"),
    "POST /v1/sessions/{session_id}/transcript": _in_session(404, _ENTRY, keyed=True),
    "GET /v1/sessions/{session_id}/transcript": _of_state(404),
    "GET /v1/sessions/{session_id}/collections": _of_state(404),
    "PUT /v1/sessions/{session_id}/collections/{label}": _of_state(404, _DOC, label="patrol"),
    "GET /v1/sessions/{session_id}/collections/{label}": _of_state(404, label="patrol"),
    "DELETE /v1/sessions/{session_id}/collections/{label}": _of_state(404, label="patrol"),
    "POST /v1/sessions/{session_id}/collections/{label}/search": _of_state(404, _VECTOR, label="patrol"),
    "GET /v1/sessions/{session_id}/files": _of_state(404),
    "GET /v1/sessions/{session_id}/files/{name}": _of_state(404, name="collections/patrol.json"),
    "GET /v1/stores/{name}": _of_scratch(200),
    "DELETE /v1/stores/{name}": _of_scratch(200),
    "GET /v1/stores/{name}/kv": _of_scratch(200),
    "PUT /v1/stores/{name}/kv/{key}": _write_scratch(_VALUE, key="patrol"),
    "GET /v1/stores/{name}/kv/{key}": _of_scratch(404, key="patrol"),
    "DELETE /v1/stores/{name}/kv/{key}": _of_scratch(200, key="patrol"),
    "GET /v1/stores/{name}/collections": _of_scratch(200),
    "PUT /v1/stores/{name}/collections/{label}": _write_scratch(_DOC, label="patrol"),
    "GET /v1/stores/{name}/collections/{label}": _of_scratch(404, label="patrol"),
    "DELETE /v1/stores/{name}/collections/{label}": _of_scratch(200, label="patrol"),
    "POST /v1/stores/{name}/collections/{label}/search": _of_scratch(404, _VECTOR, label="patrol"),
    "POST /v1/sessions/{session_id}/observations": _in_session(404, _OBSERVATION, keyed=True),
    "GET /v1/sessions/{session_id}/observations": _in_session(404),
    "POST /v1/observations/search": _search_observations,
    "PUT /v1/agents/{agent_id}": _of_agent(200, {"public_key": "mine", "document": "mine"}),
    "GET /v1/agents/{agent_id}": _of_agent(404),
    "DELETE /v1/agents/{agent_id}": _of_agent(200),
    "GET /v1/agents/{agent_id}/kv": _of_agent(200),
    "PUT /v1/agents/{agent_id}/kv/{key}": _of_agent(200, {"value": "mine"}, key="patrol"),
    "GET /v1/agents/{agent_id}/kv/{key}": _of_agent(404, key="patrol"),
    "DELETE /v1/agents/{agent_id}/kv/{key}": _of_agent(200, key="patrol"),
    "POST /v1/agents/{agent_id}/texts": _of_agent(201, {"content": "mine"}, keyed=True),
    "GET /v1/agents/{agent_id}/texts": _of_agent(200),
    "PUT /v1/agents/{agent_id}/texts": _of_agent(200, {"texts": [{"content": "mine"}]}),
    "DELETE /v1/agents/{agent_id}/texts": _of_agent(200),
    "GET /v1/agents/{agent_id}/texts/{text_id}": _of_agent(404, text_id="text"),
    "DELETE /v1/agents/{agent_id}/texts/{text_id}": _of_agent(200, text_id="text"),
    "GET /v1/agents/{agent_id}/files": _of_agent(200),
    "PUT /v1/agents/{agent_id}/files/{name}": _put_file,
    "GET /v1/agents/{agent_id}/files/{name}": _of_agent(404, name="patrol"),
    "DELETE /v1/agents/{agent_id}/files/{name}": _of_agent(200, name="patrol"),
    "GET /v1/directives": _without_ids,
    "GET /v1/directives/{name}": _of_directive,
    "PUT /v1/directives/{name}": lambda _: [Call(200, {"name": "memory-rules"}, body={"text": "mine"})],
    "GET /v1/directives/{name}/history": _of_directive,
    "POST /v1/dreams": lambda ids: [Call(201, body=_scope(ids), headers=_key(ids))],
    "GET /v1/dreams": lambda ids: [Call(200, query=query) for query in ({}, _scope(ids))],
    "GET /v1/dreams/{run_id}": _of_run,
    "GET /v1/dreams/{run_id}/diff": _of_run,
    "POST /v1/dreams/{run_id}/undo": _of_run,
    "POST /v1/sessions/{session_id}/spend": _report_spend,
    "GET /v1/sessions/{session_id}/spend": _in_session(404),
    "GET /v1/spend": _spend,
    "GET /v1/prices": _without_ids,
    "PUT /v1/prices/{model}": lambda _: [Call(200, {"model": "m"}, body={"input": 1})],
    "DELETE /v1/prices/{model}": lambda _: [Call(200, {"model": "m"})],
    "GET /v1/budgets": _without_ids,
    "GET /v1/budgets/{scope}": _of_budget(404),
    "PUT /v1/budgets/{scope}": _of_budget(200, _LIMIT),
    "DELETE /v1/budgets/{scope}": _of_budget(200),
    "GET /v1/users": lambda ids: [
        Call(200, query=query) for query in ({}, {"agent_id": ids.agent}, {"prefix": ids.user})
    ],
    "GET /v1/agents": _without_ids,
    "DELETE /v1/users/{user_id}": lambda ids: [Call(200, {"user_id": ids.user})],
    "GET /v1/erasures/{erasure_id}": lambda ids: [Call(404, {"erasure_id": ids.run})],
    "POST /v1/memories/delete": lambda ids: [
        Call(200, body=_scope(ids) | {"filter": _EVERYTHING, "dry_run": dry_run}) for dry_run in (False, True)
    ],
    "POST /v1/batch": _batch,
    "GET /healthz": _without_ids,
    "GET /readyz": _without_ids,
    "GET /metrics": _without_ids,
    "GET /v1/status": _without_ids,
}
