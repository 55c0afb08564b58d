"""What is stored of a request keeps no word of its caller, and no erasure makes a repetition run again."""

from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import insert, text

from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.idempotency.table import idempotent_response
from tests.agent import Agent
from tests.conftest import Gateway

NAME = "marmalade"
USER, SESSION, KEY = f"{NAME}-user", f"{NAME}-session", f"{NAME}-key"


async def _rows(gateway: Gateway) -> list[str]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        rows = await tx.execute(
            text("SELECT r::text FROM idempotent_response r WHERE tenant = :tenant ORDER BY created_at, key"),
            {"tenant": gateway.tenant},
        )
        return [row[0] for row in rows]


async def _fill(agent: Agent) -> None:
    """Send requests with keys, all of which can be repeated."""
    await _send(agent, status=201)


async def _send(agent: Agent, *, status: int) -> None:
    headers = {"idempotency-key": KEY}
    turns = f"/v1/sessions/{SESSION}/turns"
    sessions = {"id": SESSION, "user_id": USER}
    await agent.request("POST", "/v1/sessions", json=sessions, headers=headers, status=status)
    turn = {"role": "user", "content": "Hello."}
    if status == 201:
        await agent.request("POST", turns, json=turn, headers=headers, status=status)
    memory = {"content": "The jar is full.", "user_id": USER}
    await agent.request("POST", "/v1/memories", json=memory, headers=headers, status=status)
    batch = {"operations": [{"method": "POST", "path": "/v1/memories", "body": memory}]}
    [result] = (await agent.request("POST", "/v1/batch", json=batch, headers=headers))["results"]
    assert result["status"] == status


async def _erase_user(agent: Agent) -> None:
    await agent.request("DELETE", f"/v1/users/{USER}")


async def _delete_records(agent: Agent) -> None:
    await agent.request("DELETE", f"/v1/sessions/{SESSION}")
    listed = await agent.request("GET", "/v1/memories", params={"user_id": USER})
    for memory in listed["results"]:
        await agent.request("DELETE", f"/v1/memories/{memory['id']}")


@pytest.mark.parametrize("erase", [_erase_user, _delete_records])
async def test_an_erasure_leaves_no_name_with_stored_requests_and_nothing_to_repeat(
    agent: Agent, gateway: Gateway, erase: Callable[[Agent], Awaitable[None]]
) -> None:
    await _fill(agent)
    before = await _rows(gateway)
    assert any(NAME in row for row in before)
    assert not any(KEY in row or "/v1/" in row for row in before)
    await erase(agent)
    after = await _rows(gateway)
    assert len(after) == len(before)
    assert not any(NAME in row for row in after)
    await _send(agent, status=409)
    assert (await agent.request("GET", "/v1/memories", params={"user_id": USER}))["results"] == []
    assert await _rows(gateway) == after


async def test_a_request_that_an_older_version_stored_by_its_words_is_not_done_again(
    gateway: Gateway,
) -> None:
    key = IdempotencyKey("POST /v1/things", KEY, b"digest")
    values = {"tenant": gateway.tenant, "route": key.route, "key": key.key, "request_digest": key.digest}
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(insert(idempotent_response).values(values | {"body": {"id": "a"}}))
    async with (
        gateway.resources.postgres.for_tenant(gateway.tenant) as tx,
        idempotent(tx, key) as request,
    ):
        assert request.stored == {"id": "a"}


def test_the_stored_names_of_two_requests_differ() -> None:
    names = {IdempotencyKey(*words, b"").stored_name for words in (("a", "bc"), ("ab", "c"), ("a", "b"))}
    assert len(names) == 3
