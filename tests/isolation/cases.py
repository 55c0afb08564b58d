"""The requests that another tenant sends with foreign ids: one case per route of the OpenAPI document.

A call names the status that it expects for a tenant without records. `CASES` must name every route,
or a test fails. Routes to one record have theirs from `record_routes.py`.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.isolation import foreign_tool_calls
from tests.isolation.calls import Call
from tests.isolation.ids import Ids
from tests.isolation.record_routes import ROUTES, TURN
from tests.isolation.records import each_prefix, scope_of
from tests.skill_archives import zip_of_skill

_PREFERENCE = {"condition": {"flow": "mine"}, "effect": {"slot": "mine", "value": "mine"}}

Case = Callable[[Ids], list[Call]]


def _key(ids: Ids) -> dict[str, str]:
    return {"idempotency-key": ids.idempotency_key}


def _by_key(status: int, body: Any = None) -> Case:
    return lambda ids: [
        Call(status, query={"namespace": ids.namespace, "key": ids.session, **scope_of(ids)}, body=body)
    ]


def _list_namespaces(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [{}, {"prefix": "session/*"}, {"max_depth": "1"}]
    return [Call(200, query=scope_of(ids) | query) for query in queries] + [Call(200)]


def _of_scope(ids: Ids) -> list[Call]:
    return [Call(200, query=scope_of(ids)), Call(200, query={"agent_id": ids.agent}), Call(200)]


def _list_memories(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [
        {},
        {"cursor": ids.cursor},
        {"state": "archived"},
        {"state": "pending"},
        {"limit": "100"},
    ]
    return [Call(200, query=scope_of(ids) | query) for query in queries] + [Call(200)]


def _save(ids: Ids) -> list[Call]:
    memory = {"content": ids.content, **scope_of(ids)}
    source = {"session_id": ids.session, "seq": 1}
    return [
        Call(201, body=memory, headers=_key(ids)),
        Call(201, body=memory | {"tags": ["mine"], "source": source}),
    ]


def _save_batch(ids: Ids) -> list[Call]:
    body = {"memories": [{"content": ids.content, **scope_of(ids)}]}
    return [Call(201, body=body, headers=_key(ids)), Call(201, body=body)]


def _search_memories(ids: Ids) -> list[Call]:
    bodies: list[dict[str, Any]] = [
        {"query": ids.content},
        {"query": ids.content, "explain": True, "strategy": "mean"},
        {"query": "letters gate raw enriched pending said"},
        {"state": "archived"},
        {},
    ]
    return [Call(200, body=scope_of(ids) | body) for body in bodies]


def _import_lines(ids: Ids) -> list[Call]:
    lines = [
        {"id": ids.memory, "content": "a line of mine", "superseded_by": [ids.archived]},
        {"id": ids.archived, "content": ids.content, "derived_from": [ids.memory]},
    ]
    content = "\n".join(json.dumps(line) for line in lines).encode()
    restore = scope_of(ids) | {"restore": "true"}
    return [Call(200, query=scope_of(ids), content=content), Call(200, query=restore, content=content)]


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
        Call(200, query=scope_of(ids), content=content),
        Call(200, query={"agent_id": ids.agent}, content=of_agent),
    ]


def _list_working_entries(ids: Ids) -> list[Call]:
    return [Call(200), Call(200, query={"namespace": ids.namespace}), *each_prefix(ids)]


def _search_working_entries(ids: Ids) -> list[Call]:
    bodies: list[dict[str, str]] = [
        {"query": "letters"},
        {"query": "letters", "prefix": ids.namespace},
        {},
        {"prefix": "patrol"},
    ]
    return [Call(200, body=body) for body in bodies]


def _open_session(ids: Ids) -> list[Call]:
    session = {"id": ids.session, **scope_of(ids)}
    patrol = {"id": f"patrol-{ids.session}", "kind": "patrol", "name": ids.patrol, **scope_of(ids)}
    return [Call(201, body=session, headers=_key(ids)), Call(201, body=session), Call(201, body=patrol)]


def _list_sessions(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [
        {},
        scope_of(ids),
        {"kind": "patrol"},
        {"cursor": ids.session_cursor},
        {"user_id": ids.user},
        {"metadata": "topic=letters", "created_after": "2020-01-01T00:00:00Z"},
    ]
    return [Call(200, query=query) for query in queries]


def _search_turns(ids: Ids) -> list[Call]:
    after = {"created_after": "2020-01-01T00:00:00Z"}
    bodies: list[dict[str, Any]] = [{}, {"session_id": ids.session}, {"explain": True}, after]
    return [Call(200, body={"query": "what of the gate said", **scope_of(ids), **body}) for body in bodies]


def _list_signals(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [{}, scope_of(ids), {"session_id": ids.session}, {"days": "3660"}]
    return [Call(200, query=query) for query in queries]


def _search_observations(ids: Ids) -> list[Call]:
    bodies: list[dict[str, Any]] = [{}, {"session_id": ids.session}, {"explain": True}, {"kind": "fact"}]
    return [Call(200, body={"query": "what was observed", **scope_of(ids), **body}) for body in bodies]


def _of_agent(status: int, body: Any = None, *, keyed: bool = False, **path: str) -> Case:
    """Ask for records of an agent. A value in `path` is the name of a field of `Ids`, or taken as it is."""

    def calls(ids: Ids) -> list[Call]:
        parameters = {name: getattr(ids, value, value) for name, value in path.items()}
        return [
            Call(status, {"agent_id": ids.agent, **parameters}, body=body, headers=_key(ids) if keyed else {})
        ]

    return calls


def _playbook(ids: Ids) -> list[Call]:
    body = {**_PLAYBOOK, "user_query": ids.content, **scope_of(ids)}
    in_session = {**_PLAYBOOK, "session_id": ids.session}
    return [Call(201, body=body, headers=_key(ids)), Call(201, body=body), Call(404, body=in_session)]


def _list_playbooks(ids: Ids) -> list[Call]:
    queries: list[dict[str, str]] = [{}, {"flow": "letters"}, {"promoted": "true"}]
    return [Call(200, query=scope_of(ids) | query) for query in queries] + [Call(200)]


def _search_playbooks(ids: Ids) -> list[Call]:
    bodies: list[dict[str, str]] = [{"flow": "letters"}, {"query": ids.content}]
    bodies.append({"flow": "letters", "query": ids.content})
    return [
        *(Call(200, body=scope_of(ids) | body) for body in bodies),
        Call(404, body={"query": ids.content, "session_id": ids.session}),
    ]


def _save_entity(ids: Ids) -> list[Call]:
    body = {"name": "slipped in", **scope_of(ids)}
    return [Call(201, body=body, headers=_key(ids)), Call(201, body=body)]


def _save_triple(ids: Ids) -> list[Call]:
    body = {"subject": "slipped in", "predicate": "is", **scope_of(ids)}
    source = {"source": {"session_id": ids.session, "seq": 1}}
    return [
        Call(201, body=body | source | {"literal": "mine"}, headers=_key(ids)),
        # The id of an entity that is not there.
        Call(422, body=body | {"object": ids.entity}),
    ]


def _traverse(ids: Ids) -> list[Call]:
    return [Call(404, body={"entity": ids.entity, **scope_of(ids)}), Call(404, body={"names": [ids.entity]})]


def _import_graph(ids: Ids) -> list[Call]:
    """Import an entity under the id of a foreign one."""
    line = {"kind": "graph_entity", "id": ids.entity, "name": "slipped in", "type": "Topic"}
    content = json.dumps(line | {"created_at": "2026-01-01T00:00:00Z"}).encode()
    return [Call(200, query=scope_of(ids), content=content)]


def _without_ids(_: Ids) -> list[Call]:
    return [Call(200)]


def _spend(ids: Ids) -> list[Call]:
    by_all = {"group_by": "agent,session,user,purpose,model,day"}
    queries: tuple[dict[str, str], ...] = (
        {},
        by_all,
        by_all | {"format": "csv"},
        {"session_id": ids.session},
        scope_of(ids),
    )
    return [Call(200, query=query) for query in queries]


_EVERYTHING = {"field": "importance", "op": "gte", "value": 0}
_PLAYBOOK = {
    "flow_dact": "letters",
    "slots": {"to": "mine"},
    "tool_calls": [{"tool_id": "post.send", "parameters": {"to": "mine"}}],
    "outcome": "success",
    "user_query": "send a letter of mine",
}


def _batch(ids: Ids) -> list[Call]:
    memory, session = f"/v1/memories/{ids.memory}", f"/v1/sessions/{ids.session}"
    operations: list[dict[str, Any]] = [
        {"method": "GET", "path": memory},
        {"method": "PATCH", "path": memory, "body": {"content": "taken over"}},
        {"method": "DELETE", "path": memory},
        {"method": "GET", "path": f"{session}/turns"},
        {"method": "POST", "path": f"{session}/turns", "body": TURN},
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

CASES: dict[str, Case] = {route: called.foreign_calls for route, called in ROUTES.items()} | {
    "GET /v1/tools": _list_tools,
    "POST /v1/tools/{name}": _call_tools,
    "GET /v1/pinned": _of_scope,
    "PUT /v1/pinned/{name}": lambda ids: [
        Call(200, {"name": ids.patrol}, body={"content": "mine", **scope_of(ids)})
    ],
    "GET /v1/preferences": _of_scope,
    "PUT /v1/preferences/{key}": lambda ids: [
        Call(200, {"key": ids.patrol}, body={**_PREFERENCE, **scope_of(ids)})
    ],
    "POST /v1/preferences/resolve": lambda ids: [
        Call(200, body={"flow": ids.patrol, "situation": "the gate", **scope_of(ids)})
    ],
    "GET /v1/skills": _of_scope,
    "PUT /v1/skills/{skill}": lambda ids: [
        Call(200, {"skill": ids.patrol}, body={"content": "mine", "summary": "mine", **scope_of(ids)})
    ],
    "GET /v1/proposals": lambda ids: [
        Call(200, query=scope_of(ids) | query) for query in ({}, {"kind": "skill"}, {"state": "held"})
    ],
    "GET /v1/proposals/{proposal_id}": lambda ids: [Call(404, {"proposal_id": ids.document})],
    "POST /v1/proposals/{proposal_id}": lambda ids: [
        Call(404, {"proposal_id": ids.document}, body={"action": action}) for action in ("approve", "refuse")
    ],
    "POST /v1/skills/search": lambda ids: [Call(200, body={"query": "how it opens", **scope_of(ids)})],
    "POST /v1/skills/import": lambda ids: [Call(201, query=scope_of(ids), content=zip_of_skill(ids.patrol))],
    "POST /v1/playbooks": _playbook,
    "GET /v1/playbooks": _list_playbooks,
    "POST /v1/playbooks/search": _search_playbooks,
    "POST /v1/graph/entities": _save_entity,
    "GET /v1/graph/entities": _of_scope,
    "POST /v1/graph/triples": _save_triple,
    "GET /v1/graph/triples": lambda ids: [
        Call(200, query=scope_of(ids)),
        Call(200, query={"entity_id": ids.entity, "validity": "any"}),
    ],
    "POST /v1/graph/match": lambda ids: [Call(200, body={"text": ids.content, **scope_of(ids)})],
    "POST /v1/graph/traverse": _traverse,
    "GET /v1/graph/export": _of_scope,
    "POST /v1/graph/import": _import_graph,
    "GET /v1/memories/export": _of_scope,
    "POST /v1/memories/import": _import_lines,
    "GET /v1/export": _of_scope,
    "POST /v1/import": _import_every_kind,
    "POST /v1/memories": _save,
    "GET /v1/memories": _list_memories,
    "POST /v1/memories/batch": _save_batch,
    "POST /v1/memories/search": _search_memories,
    "GET /v1/memories/categories": _of_scope,
    "GET /v1/memories/tags": _of_scope,
    "PUT /v1/memories/by-key": _by_key(201, {"content": "a note under a key of mine"}),
    "GET /v1/namespaces": _list_namespaces,
    "GET /v1/working": _list_working_entries,
    "POST /v1/working/search": _search_working_entries,
    "POST /v1/sessions": _open_session,
    "GET /v1/sessions": _list_sessions,
    "POST /v1/turns/search": _search_turns,
    "GET /v1/feedback": _list_signals,
    "POST /v1/observations/search": _search_observations,
    "DELETE /v1/agents/{agent_id}": _of_agent(200),
    "POST /v1/dreams": lambda ids: [Call(201, body=scope_of(ids), headers=_key(ids))],
    "GET /v1/dreams": lambda ids: [Call(200, query=query) for query in ({}, scope_of(ids))],
    "GET /v1/spend": _spend,
    "GET /v1/users": lambda ids: [
        Call(200, query=query) for query in ({}, {"agent_id": ids.agent}, {"prefix": ids.user})
    ],
    "GET /v1/agents": _without_ids,
    "DELETE /v1/users/{user_id}": lambda ids: [Call(200, {"user_id": ids.user})],
    "GET /v1/erasures/{erasure_id}": lambda ids: [Call(404, {"erasure_id": ids.run})],
    "POST /v1/memories/delete": lambda ids: [
        Call(200, body=scope_of(ids) | {"filter": _EVERYTHING, "dry_run": dry_run})
        for dry_run in (False, True)
    ],
    "POST /v1/batch": _batch,
    "GET /healthz": _without_ids,
    "GET /readyz": _without_ids,
    "GET /metrics": _without_ids,
}
