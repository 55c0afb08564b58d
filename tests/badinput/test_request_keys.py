"""API conventions: an Idempotency-Key makes a request happen once and be answered the same."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.badinput import problem
from tests.badinput.conftest import SESSION, Door

CREATING: dict[str, dict[str, Any]] = {
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
}
creating = pytest.mark.parametrize("path", CREATING)


def _body(path: str) -> dict[str, Any]:
    """Return a body for a route; a scope has one dream at a time, so each is of another."""
    return CREATING[path] | ({"agent_id": uuid4().hex} if path == "/v1/dreams" else {})


async def _post(door: Door, path: str, body: Any, key: str) -> httpx.Response:
    return await door.client.post(path, json=body, headers={"idempotency-key": key})


async def test_every_route_that_takes_a_request_key_is_tried_here(door: Door) -> None:
    document = (await door.client.get("/openapi.json")).json()
    taking = {
        path.replace("{session_id}", SESSION).replace("{agent_id}", "support")
        for path, verbs in document["paths"].items()
        for operation in verbs.values()
        if any(one["name"] == "idempotency-key" for one in operation.get("parameters", []))
    }
    assert taking == set(CREATING)


@creating
async def test_a_replay_is_answered_the_same_and_does_nothing(door: Door, path: str) -> None:
    key = uuid4().hex
    body = _body(path)
    first = await _post(door, path, body, key)
    assert first.is_success, first.text
    async with door.unchanged():
        again = await _post(door, path, body, key)
    assert (again.status_code, again.json()) == (first.status_code, first.json())


@creating
async def test_the_same_key_with_another_body_is_a_409_and_does_nothing(door: Door, path: str) -> None:
    key = uuid4().hex
    await _post(door, path, _body(path), key)
    others: dict[str, Any] = {
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
    }
    async with door.unchanged():
        other = await _post(door, path, others[path], key)
    assert other.status_code == 409
    assert "another body" in problem.read(other)["detail"]


@creating
async def test_twins_at_the_same_time_do_it_once(door: Door, path: str) -> None:
    """Each twin is answered the one result, or a 409 that says when to come back."""
    key, body = uuid4().hex, _body(path)
    answers = await asyncio.gather(*[_post(door, path, body, key) for _ in range(12)])
    done = [answer for answer in answers if answer.is_success]
    waiting = [answer for answer in answers if not answer.is_success]
    assert done
    assert all(answer.json() == done[0].json() for answer in done)
    assert {answer.status_code for answer in waiting} <= {409}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in waiting)
    after = await _post(door, path, body, key)
    assert after.json() == done[0].json()


async def test_twins_without_a_key_of_the_same_turn_are_two_turns(door: Door) -> None:
    """The test above can fail: it is the key that makes the twins one."""
    path = f"/v1/sessions/{SESSION}/turns"
    answers = [await door.client.post(path, json=CREATING[path]) for _ in range(2)]
    assert answers[0].json() != answers[1].json()


async def test_a_key_belongs_to_its_route_and_tenant(door: Door) -> None:
    key = uuid4().hex
    one = await _post(door, "/v1/memories", {"content": "the same key"}, key)
    two = await _post(door, "/v1/sessions", {}, key)
    assert (one.status_code, two.status_code) == (201, 201)
    async with await door.gateway.another(f"t-{uuid4().hex[:8]}") as client:
        headers = {"idempotency-key": key}
        other = await client.post("/v1/memories", json={"content": "another body"}, headers=headers)
    assert other.status_code == 201
    assert other.json()["id"] != one.json()["id"]


@pytest.mark.parametrize("key", ["", "k" * 256, "a\tb", "\x7f"])
async def test_a_key_is_1_to_255_printable_characters(door: Door, key: str) -> None:
    async with door.unchanged():
        answer = await _post(door, "/v1/memories", {"content": "not with this key"}, key)
    assert problem.names(answer, "Idempotency-Key", "1 to 255 printable"), answer.text


async def test_a_refused_request_leaves_its_key_free(door: Door) -> None:
    key = uuid4().hex
    assert (await _post(door, "/v1/memories", {"content": ""}, key)).status_code == 422
    assert (await _post(door, "/v1/memories", {"content": "now it is right"}, key)).status_code == 201
