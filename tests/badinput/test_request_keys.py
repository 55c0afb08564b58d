"""With an Idempotency-Key, a request is executed once and its repetitions get the same response."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.badinput import problem
from tests.badinput.conftest import SESSION, CheckedGateway

ENTRY = f"/v1/working/session/{SESSION}/k"
BY_KEY = "/v1/memories/by-key"
METHODS = {ENTRY: "PATCH", BY_KEY: "PUT"}
TURN = {"role": "user", "content": "said once"}
PLAYBOOK = {"flow_dact": "keep", "slots": {}, "tool_calls": [{"tool_id": "keep"}], "outcome": "success"}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/memories": {"content": "kept once"},
    "/v1/memories/batch": {"memories": [{"content": "kept once, too"}, {"content": ""}]},
    "/v1/sessions": {},
    f"/v1/sessions/{SESSION}/turns": {"role": "user", "content": "said once"},
    f"/v1/sessions/{SESSION}/turns/batch": {"turns": [{"role": "user", "content": "said"}, {"role": "?"}]},
    f"/v1/sessions/{SESSION}/context": {"message": "asked once"},
    f"/v1/sessions/{SESSION}/feedback": {"type": "UserThumbsUp", "summary": "liked once"},
    f"/v1/sessions/{SESSION}/transcript": {"role": "user", "content": "noted once"},
    f"/v1/sessions/{SESSION}/observations": {"kind": "fact", "content": "observed once"},
    f"/v1/sessions/{SESSION}/spend": {"usage_id": "once", "model": "m", "usage": {"total_tokens": 7}},
    "/v1/agents/support/texts": {"content": "kept once by an agent"},
    "/v1/feedback": {"session_id": SESSION, "type": "Correction", "summary": "put right once"},
    "/v1/dreams": {"dry_run": True},
    f"/v1/sessions/{SESSION}/turns/pop": {},
    f"/v1/sessions/{SESSION}/mine": {},
    f"/v1/sessions/{SESSION}/scratchpad": {"content": "kept once in a scratchpad"},
    f"/v1/sessions/{SESSION}/scratchpad/promote": {"to": "preference", "reason": "kept once"},
    f"/v1/sessions/{SESSION}/report": {"title": "Report", "content": "kept once as a report"},
    "/v1/playbooks": PLAYBOOK | {"user_query": "kept once as a playbook"},
    "/v1/tools/memory_add": {"arguments": {"content": "kept once by a tool"}},
    "/v1/graph/entities": {"name": "kept once"},
    "/v1/graph/triples": {"subject": "kept once", "predicate": "is", "literal": "a triple"},
    ENTRY: {"append": " and more"},
    BY_KEY: {"content": "kept once under a key"},
    "/v1/batch": {
        "operations": [
            {"method": "POST", "path": "/v1/memories", "body": {"content": "kept once by a batch"}},
            {"method": "POST", "path": f"/v1/sessions/{SESSION}/turns", "body": TURN},
            {"method": "POST", "path": f"/v1/sessions/{SESSION}/turns", "body": TURN},
        ]
    },
}
every_creating_route = pytest.mark.parametrize("path", BODIES)


def _body(path: str) -> dict[str, Any]:
    """Return a body for a route. Each dream gets its own scope, because a scope has one run at a time."""
    return BODIES[path] | ({"agent_id": uuid4().hex} if path == "/v1/dreams" else {})


async def _post(gateway: CheckedGateway, path: str, body: Any, key: str) -> httpx.Response:
    method, params = METHODS.get(path, "POST"), {"key": "k"} if path == BY_KEY else {}
    headers = {"idempotency-key": key}
    return await gateway.client.request(method, path, params=params, json=body, headers=headers)


@asynccontextmanager
async def _unchanged(gateway: CheckedGateway, path: str) -> AsyncIterator[None]:
    """Fail unless the block changes nothing. An append enqueues its index job before it knows that."""
    if path != ENTRY:
        async with gateway.unchanged():
            yield
        return
    before = (await gateway.client.get(ENTRY)).json()
    yield
    assert (await gateway.client.get(ENTRY)).json() == before


async def test_every_route_that_takes_an_idempotency_key_is_tested(gateway: CheckedGateway) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    routes = {
        path.replace("{session_id}", SESSION)
        .replace("{agent_id}", "support")
        .replace("/{key}", f"/session/{SESSION}/k")
        .replace("/v1/tools/{name}", "/v1/tools/memory_add")
        for path, verbs in document["paths"].items()
        for operation in verbs.values()
        if any(parameter["name"] == "idempotency-key" for parameter in operation.get("parameters", []))
    }
    # An upload is a form; tests/integration/documents/test_again.py repeats it.
    # So does tests/integration/proposals/test_decisions.py with a decision, which needs something held.
    assert routes == {*BODIES, "/v1/documents", "/v1/proposals/{proposal_id}"}


@every_creating_route
async def test_a_repeated_request_gets_the_same_response_and_does_nothing(
    gateway: CheckedGateway, path: str
) -> None:
    key = uuid4().hex
    body = _body(path)
    first = await _post(gateway, path, body, key)
    assert first.is_success, first.text
    async with _unchanged(gateway, path):
        repeated = await _post(gateway, path, body, key)
    assert (repeated.status_code, repeated.json()) == (first.status_code, first.json())


@every_creating_route
async def test_the_same_key_with_another_body_is_a_409_and_does_nothing(
    gateway: CheckedGateway, path: str
) -> None:
    key = uuid4().hex
    await _post(gateway, path, _body(path), key)
    other_bodies: dict[str, Any] = {
        "/v1/memories": {"content": "something else"},
        "/v1/memories/batch": {"memories": [{"content": "something else"}]},
        "/v1/sessions": {"agent_id": "another"},
        f"/v1/sessions/{SESSION}/turns": {"role": "user", "content": "something else"},
        f"/v1/sessions/{SESSION}/turns/batch": {"turns": [{"role": "user", "content": "something else"}]},
        f"/v1/sessions/{SESSION}/context": {"message": "something else"},
        f"/v1/sessions/{SESSION}/feedback": {"type": "UserThumbsDown", "summary": "something else"},
        f"/v1/sessions/{SESSION}/transcript": {"role": "user", "content": "something else"},
        f"/v1/sessions/{SESSION}/observations": {"kind": "fact", "content": "something else"},
        f"/v1/sessions/{SESSION}/spend": {"usage_id": "other", "model": "m", "usage": {"total_tokens": 8}},
        "/v1/agents/support/texts": {"content": "something else"},
        "/v1/feedback": {"session_id": SESSION, "type": "ToolFailure", "summary": "something else"},
        "/v1/dreams": {"dry_run": False},
        f"/v1/sessions/{SESSION}/turns/pop": {"another": "body"},
        f"/v1/sessions/{SESSION}/mine": {"another": "body"},
        f"/v1/sessions/{SESSION}/scratchpad": {"content": "something else"},
        f"/v1/sessions/{SESSION}/scratchpad/promote": {"to": "preference", "reason": "something else"},
        f"/v1/sessions/{SESSION}/report": {"title": "Report", "content": "something else"},
        "/v1/playbooks": PLAYBOOK | {"user_query": "something else"},
        "/v1/tools/memory_add": {"arguments": {"content": "something else"}},
        "/v1/graph/entities": {"name": "something else"},
        "/v1/graph/triples": {"subject": "something else", "predicate": "is", "literal": "a triple"},
        ENTRY: {"append": "something else"},
        BY_KEY: {"content": "something else"},
        "/v1/batch": {"operations": BODIES["/v1/batch"]["operations"][:1]},
    }
    async with _unchanged(gateway, path):
        response = await _post(gateway, path, other_bodies[path], key)
    assert response.status_code == 409
    assert "another body" in problem.parse_problem(response)["detail"]


@every_creating_route
async def test_identical_requests_at_the_same_time_are_executed_once(
    gateway: CheckedGateway, path: str
) -> None:
    """Each gets the same result, or a 409 that says when to retry."""
    key, body = uuid4().hex, _body(path)
    responses = await asyncio.gather(*[_post(gateway, path, body, key) for _ in range(12)])
    successes = [response for response in responses if response.is_success]
    conflicts = [response for response in responses if not response.is_success]
    assert successes
    assert all(response.json() == successes[0].json() for response in successes)
    assert {response.status_code for response in conflicts} <= {409}
    assert all(int(response.headers["retry-after"]) >= 1 for response in conflicts)
    after = await _post(gateway, path, body, key)
    assert after.json() == successes[0].json()


async def test_identical_requests_without_a_key_make_two_turns(gateway: CheckedGateway) -> None:
    """The test above can fail: without a key, both requests are executed."""
    path = f"/v1/sessions/{SESSION}/turns"
    responses = [await gateway.client.post(path, json=BODIES[path]) for _ in range(2)]
    assert responses[0].json() != responses[1].json()


async def test_a_key_belongs_to_its_route_and_tenant(gateway: CheckedGateway) -> None:
    key = uuid4().hex
    saved = await _post(gateway, "/v1/memories", {"content": "the same key"}, key)
    session = await _post(gateway, "/v1/sessions", {}, key)
    assert (saved.status_code, session.status_code) == (201, 201)
    async with await gateway.served.new_client(f"t-{uuid4().hex[:8]}") as client:
        headers = {"idempotency-key": key}
        other = await client.post("/v1/memories", json={"content": "another body"}, headers=headers)
    assert other.status_code == 201
    assert other.json()["id"] != saved.json()["id"]


@pytest.mark.parametrize("key", ["", "k" * 256, "a\tb", "\x7f"])
async def test_a_key_is_1_to_255_printable_characters(gateway: CheckedGateway, key: str) -> None:
    async with gateway.unchanged():
        response = await _post(gateway, "/v1/memories", {"content": "not with this key"}, key)
    assert problem.names_violation(response, "Idempotency-Key", "1 to 255 printable"), response.text


async def test_a_refused_request_leaves_its_key_free(gateway: CheckedGateway) -> None:
    key = uuid4().hex
    assert (await _post(gateway, "/v1/memories", {"content": ""}, key)).status_code == 422
    assert (await _post(gateway, "/v1/memories", {"content": "now it is right"}, key)).status_code == 201
