"""What the gateway answers is what its OpenAPI document declares: status, content type, every field."""

from typing import Any
from uuid import uuid4

import httpx

from tests import declared_responses
from tests.conftest import Gateway

KEYED = "/v1/memories/by-key?namespace=notes&key=k"
RED = {"field": "tags", "op": "eq", "value": "red"}
Request = tuple[str, str, Any]
PLAYBOOK = {
    "flow_dact": "open_gate",
    "slots": {"gate": "iron"},
    "tool_calls": [{"tool_id": "gate.open", "parameters": {"hour": 6}}],
    "user_query": "Open the gate at six.",
}


def memory_requests(memory: dict[str, Any]) -> list[Request]:
    path = f"/v1/memories/{memory['id']}"
    return [
        ("POST", "/v1/memories?wait=searchable", {"content": "The gate opens at six.", "tags": ["red"]}),
        ("POST", "/v1/memories/batch", {"memories": [{"content": "two"}, {"content": ""}]}),
        ("GET", "/v1/memories?limit=1", None),
        ("GET", "/v1/memories?limit=1000", None),
        ("POST", "/v1/memories/search", {"query": "gate", "explain": True}),
        ("POST", "/v1/memories/search", {"query": "gate", "limit": 1}),
        ("GET", path, None),
        ("GET", "/v1/memories/none", None),
        ("PATCH", path, {"content": "The gate opens at seven.", "reason": "told"}),
        ("GET", f"{path}/history", None),
        ("POST", f"{path}/archive", {"reason": "closed"}),
        ("POST", f"{path}/restore", {}),
        ("POST", f"{path}/revert", {"version": memory["version"]}),
        ("POST", f"{path}/enrich", {}),
        ("GET", "/v1/memories/categories", None),
        ("GET", "/v1/memories/tags", None),
        ("PUT", KEYED, {"content": "keyed"}),
        ("PUT", KEYED, {"content": "keyed again"}),
        ("GET", KEYED, None),
        ("GET", "/v1/namespaces", None),
        ("DELETE", KEYED, None),
        ("POST", "/v1/memories/delete", {"filter": RED, "dry_run": True}),
        ("POST", "/v1/memories/delete", {"filter": RED}),
        ("DELETE", path, None),
        ("GET", "/v1/export", None),
        ("GET", "/v1/memories/export", None),
    ]


def session_requests(session: str) -> list[Request]:
    path, turn = f"/v1/sessions/{session}", {"role": "user", "content": "Where is the gate?"}
    return [
        ("POST", "/v1/sessions", {"id": session, "metadata": {"channel": "mail"}}),
        ("POST", "/v1/sessions", {"kind": "patrol", "name": session}),
        ("GET", "/v1/sessions", None),
        ("GET", path, None),
        ("PATCH", path, {"name": "gate"}),
        ("POST", f"{path}/turns", turn | {"item": {"a": [1]}}),
        ("POST", f"{path}/turns/batch", {"turns": [turn, {"role": "wizard"}, turn]}),
        ("GET", f"{path}/turns?last=2", None),
        ("GET", f"{path}/turns?after_seq=0&limit=1", None),
        ("GET", f"{path}/turns/1", None),
        ("PATCH", f"{path}/turns/1?wait=searchable", {"content": "Who keeps the gate?"}),
        ("POST", "/v1/turns/search", {"query": "gate", "explain": True}),
        ("POST", f"{path}/context", {"message": "the gate", "explain": True}),
        ("GET", f"{path}/turns/export", None),
        ("POST", f"{path}/turns/pop", None),
        ("DELETE", f"{path}/turns/1", None),
        ("POST", f"{path}/observations", {"kind": "fact", "content": "The gate is iron."}),
        ("GET", f"{path}/observations", None),
        ("POST", "/v1/observations/search", {"query": "gate", "explain": True}),
        ("POST", f"{path}/scratchpad", {"content": "The gate squeaks."}),
        ("GET", f"{path}/scratchpad", None),
        ("POST", f"{path}/scratchpad/promote?wait=searchable", {"to": "preference", "reason": "told"}),
        ("POST", f"{path}/report", {"title": "Gate", "content": "The gate is iron and squeaks."}),
        ("GET", f"{path}/scratchpad/promotions?limit=1", None),
        ("PUT", f"/v1/working/session/{session}/a", {"value": "one"}),
        ("PATCH", f"/v1/working/session/{session}/a", {"append": "two"}),
        ("GET", f"/v1/working/session/{session}/a", None),
        ("POST", "/v1/working/search", {"query": "one"}),
        ("GET", f"/v1/working?prefix=session/{session}", None),
        ("DELETE", f"/v1/working/session/{session}/a", None),
        ("PUT", f"{path}/kv/k", {"value": 1}),
        ("GET", f"{path}/kv", None),
        ("PUT", f"{path}/collections/c", {"type": "doc", "value": {}}),
        ("GET", f"{path}/collections/c", None),
        ("GET", f"{path}/files", None),
        ("GET", f"{path}/files/kv.json", None),
        ("POST", f"{path}/spend", {"usage_id": "u", "model": "m", "usage": {"prompt_tokens": 3}}),
        ("GET", f"{path}/spend", None),
        ("GET", "/v1/spend?format=csv", None),
        ("DELETE", path, None),
    ]


_PREFERENCE = {
    "condition": {"flow": "inn", "description": "an inn is full"},
    "effect": {"slot": "depth", "value": 1},
    "related": ["other"],
}
OTHERS: list[Request] = [
    ("PUT", "/v1/pinned/rule", {"content": "Be brief."}),
    ("GET", "/v1/pinned", None),
    ("DELETE", "/v1/pinned/rule", None),
    ("PUT", "/v1/preferences/depth", _PREFERENCE),
    (
        "PUT",
        "/v1/preferences/other",
        _PREFERENCE | {"effect": {"slot": "depth", "value": 2, "template": "t"}},
    ),
    ("GET", "/v1/preferences/depth", None),
    ("GET", "/v1/preferences?limit=1", None),
    ("POST", "/v1/preferences/resolve", {"flow": "inn", "situation": "the inn is full"}),
    ("DELETE", "/v1/preferences/depth", None),
    ("PUT", "/v1/skills/bake-bread?wait=searchable", {"content": "Knead.", "see_also": ["mill"]}),
    ("GET", "/v1/skills/bake-bread", None),
    ("GET", "/v1/skills?limit=1", None),
    ("GET", "/v1/skills/bake-bread/versions", None),
    ("GET", "/v1/skills/bake-bread/export", None),
    ("POST", "/v1/skills/search", {"query": "bake bread"}),
    ("GET", "/v1/proposals", None),
    ("GET", "/v1/proposals?kind=skill", None),
    ("POST", "/v1/proposals/none", {"action": "approve"}),
    ("PUT", "/v1/skills/Bake", {"content": "Knead."}),
    ("DELETE", "/v1/skills/bake-bread", None),
    ("POST", "/v1/playbooks?wait=searchable", PLAYBOOK | {"outcome": "Completed"}),
    ("POST", "/v1/playbooks", PLAYBOOK | {"outcome": "failure"}),
    ("POST", "/v1/playbooks", PLAYBOOK | {"outcome": "well enough"}),
    ("GET", "/v1/playbooks?limit=1", None),
    ("GET", "/v1/playbooks/none", None),
    ("POST", "/v1/playbooks/search", {"flow": "open_gate", "query": "open the gate"}),
    ("DELETE", "/v1/playbooks/none", None),
    ("POST", "/v1/graph/entities", {"name": "Ada", "aliases": ["A. L."], "type": "Person"}),
    ("POST", "/v1/graph/entities", {"name": ""}),
    ("GET", "/v1/graph/entities?limit=1", None),
    ("GET", "/v1/graph/entities/none", None),
    ("DELETE", "/v1/graph/entities/none", None),
    (
        "POST",
        "/v1/graph/triples",
        {"subject": "Ada", "predicate": "knows", "object": "Bob", "source": {"memory_id": "m"}},
    ),
    ("POST", "/v1/graph/triples", {"subject": "Ada", "predicate": "knows"}),
    ("GET", "/v1/graph/triples?limit=1", None),
    ("GET", "/v1/graph/triples/none", None),
    ("DELETE", "/v1/graph/triples/none", None),
    ("POST", "/v1/graph/triples/none/invalidate", {"reason": "over"}),
    ("POST", "/v1/graph/triples/none/restore", None),
    ("POST", "/v1/graph/match", {"text": "What of Ada?"}),
    ("POST", "/v1/graph/traverse", {"entity": "Ada"}),
    ("POST", "/v1/graph/traverse", {"entity": "nobody"}),
    ("GET", "/v1/graph/export", None),
    ("PUT", "/v1/patterns/consent", {"consent": True}),
    ("GET", "/v1/patterns/consent", None),
    ("GET", "/v1/patterns", None),
    ("PUT", "/v1/business-context", {"content": "# Inn"}),
    ("PUT", "/v1/business-context", {"content": "# Mill"}),
    ("GET", "/v1/business-context", None),
    ("PUT", "/v1/agents/inn", {"name": "Inn"}),
    ("GET", "/v1/agents", None),
    ("POST", "/v1/agents/inn/texts", {"content": "Rooms have numbers."}),
    ("GET", "/v1/agents/inn/texts", None),
    ("DELETE", "/v1/agents/inn", None),
    ("POST", "/v1/dreams", {"agent_id": "default", "dry_run": True}),
    ("GET", "/v1/dreams", None),
    ("GET", "/v1/users", None),
    ("DELETE", "/v1/users/ada", None),
    ("GET", "/v1/directives", None),
    ("GET", "/v1/status", None),
    ("GET", "/readyz", None),
    ("GET", "/metrics", None),
    ("GET", "/v1/tools?set=all", None),
    ("GET", "/v1/tools?style=anthropic", None),
    ("GET", "/v1/tools?style=none", None),
    ("POST", "/v1/tools/memory_search", {"arguments": {"query": "gate"}}),
    ("POST", "/v1/tools/memory_update", {"arguments": {"id": "none", "importance": 1}}),
    ("POST", "/v1/tools/none", {"arguments": {}}),
    ("POST", "/v1/import", None),
    ("POST", "/v1/batch", {"operations": [{"method": "GET", "path": "/v1/status"}, {"method": "BREW"}]}),
    ("POST", "/v1/memories", {"content": "x", "colour": "red"}),
    ("POST", "/v1/memories", {"content": "x" * 16_001}),
    ("POST", "/v1/memories", {"content": "x" * 1_100_000}),
    ("PATCH", "/v1/status", None),
    ("GET", "/v1/nowhere", None),
]


async def test_every_response_is_the_declared_one(gateway: Gateway) -> None:
    client = gateway.client
    memory = (await client.post("/v1/memories", json={"content": "The gate closes at nine."})).json()
    faults, statuses = [], set()
    for method, path, body in [*memory_requests(memory), *session_requests(f"s-{uuid4().hex}"), *OTHERS]:
        response = await client.request(method, path, json=body)
        statuses.add(response.status_code)
        faults += [f"{method} {path}: {fault}" for fault in declared_responses.violations(response)]
    assert faults == []
    assert {200, 201, 404, 405, 413, 422} <= statuses


async def test_responses_that_depend_on_the_key_or_the_version_are_declared(gateway: Gateway) -> None:
    version = {
        "if-none-match": (await gateway.client.put("/v1/pinned/a", json={"content": "x"})).headers["etag"]
    }
    stale = {"if-match": '"1"'}
    async with await gateway.new_client(rights=["read"]) as reader:
        responses = {
            304: await gateway.client.get("/v1/pinned/a", headers=version),
            401: await gateway.client.get("/v1/status", headers={"authorization": "Bearer x"}),
            403: await reader.put("/v1/pinned/a", json={"content": "y"}),
            412: await gateway.client.put("/v1/pinned/a", json={"content": "y"}, headers=stale),
        }
    for status, response in responses.items():
        assert (response.status_code, declared_responses.violations(response)) == (status, [])


async def test_an_undeclared_field_is_noticed(gateway: Gateway) -> None:
    response = await gateway.client.get("/v1/status")
    changed = httpx.Response(200, json=response.json() | {"colour": "red"}, request=response.request)
    assert "colour" in declared_responses.violations(changed)[0]
