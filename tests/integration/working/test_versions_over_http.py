"""LT23: versions of working-memory entries as entity tags, and appends that are repeated, over HTTP."""

import asyncio
from typing import Any

import httpx
import pytest

from shared.platform.idempotency.idempotent import IdempotentRequest
from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.forgetting.conftest import records_with
from tests.second_gateway import NO_REDIS, beside
from tests.state import StateInspector

KEY = "patrol/mail/log"
PATH = f"/v1/working/{KEY}"


async def _append(gateway: Gateway, text: str, key: str | None = None, **headers: str) -> httpx.Response:
    headers |= {} if key is None else {"idempotency-key": key}
    return await gateway.client.patch(PATH, json={"append": text}, headers=headers)


async def _value(agent: Agent) -> Any:
    return (await agent.request("GET", PATH))["value"]


async def test_every_answer_has_the_version_and_a_write_may_name_it(agent: Agent, gateway: Gateway) -> None:
    client = gateway.client
    put = await client.put(PATH, json={"value": "a"}, headers={"if-none-match": "*"})
    tag = put.headers["etag"]
    assert tag == f'"{put.json()["version"]}"'
    appended = await _append(gateway, "b", **{"if-match": tag})
    assert (appended.status_code, appended.json()["value"]) == (200, "ab")
    current = appended.headers["etag"]
    assert appended.json()["version"] > put.json()["version"]
    read = await client.get(PATH)
    assert (read.headers["etag"], read.json()) == (current, appended.json())
    assert (await client.get(PATH, headers={"if-none-match": current})).status_code == 304
    listed = await agent.request("GET", "/v1/working", params={"prefix": "patrol/mail"})
    found = await agent.request("POST", "/v1/working/search", json={"query": "log"})
    for (result,) in (listed["results"], found["results"]):
        assert f'"{result["version"]}"' == current


async def test_a_write_that_names_an_old_version_changes_nothing(agent: Agent, gateway: Gateway) -> None:
    client = gateway.client
    old = (await client.put(PATH, json={"value": "a"})).headers["etag"]
    current = (await _append(gateway, "b")).headers["etag"]
    for method, body in (("PUT", {"value": "c"}), ("PATCH", {"append": "c"}), ("DELETE", None)):
        refused = await client.request(method, PATH, headers={"if-match": old}, json=body)
        assert refused.status_code == 412, method
        assert current.strip('"') in refused.json()["detail"]
    assert (await client.delete(PATH, headers={"if-none-match": "*"})).status_code == 412
    assert await _value(agent) == "ab"
    assert (await client.delete(PATH, headers={"if-match": current})).json() == {"key": KEY, "deleted": True}
    assert (await client.put(PATH, json={"value": "d"}, headers={"if-match": current})).status_code == 412
    assert (await _append(gateway, "d")).status_code == 404


async def test_a_deletion_that_is_refused_erases_no_stored_response(agent: Agent, gateway: Gateway) -> None:
    session = await agent.session()
    await agent.put(f"session/{session}/note", "x")
    context = await agent.context(session, "What is there?", idempotency_key="k")
    path, old = f"/v1/working/session/{session}/note", {"if-match": '"7"'}
    assert (await gateway.client.delete(path, headers=old)).status_code == 412
    assert await agent.context(session, "What is there?", idempotency_key="k") == context


async def test_what_is_appended_is_found_at_once_and_what_was_there_still_is(
    agent: Agent, gateway: Gateway
) -> None:
    await agent.put(KEY, "the lantern")
    appended = await asyncio.gather(*(_append(gateway, f" word{number}x") for number in range(20)))
    assert {response.status_code for response in appended} == {200}
    for query in ("lantern", *(f"word{number}x" for number in range(20))):
        found = await agent.request("POST", "/v1/working/search", json={"query": query})
        assert [(result["key"], found["degraded"]) for result in found["results"]] == [(KEY, [])], query


async def test_a_repeated_append_appends_once_and_its_text_stays_out_of_postgres(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await agent.put(KEY, "a")
    first = await _append(gateway, " zwergohreule", "k")
    repeated = await _append(gateway, " zwergohreule", "k")
    assert (repeated.status_code, repeated.json()) == (200, first.json())
    holders = await records_with(inspector, gateway, "zwergohreule")
    assert holders
    assert not [name for name in holders if "idempotent" in name]
    await _append(gateway, "!", "other")
    assert (await _append(gateway, " zwergohreule", "k")).json()["value"] == "a zwergohreule!"
    assert (await _append(gateway, "another body", "k")).status_code == 409
    await agent.request("DELETE", PATH)
    await agent.put(KEY, "new")
    assert (await _append(gateway, " zwergohreule", "k")).status_code == 409
    assert await _value(agent) == "new"


async def test_an_append_whose_process_died_before_its_answer_is_done_once(
    agent: Agent, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_arguments: Any, **_fields: Any) -> None:
        raise ConnectionResetError

    await agent.put(KEY, "a")
    with monkeypatch.context() as patched:
        patched.setattr(IdempotentRequest, "store", die)
        assert (await _append(gateway, "b", "k")).status_code >= 500
    assert await _value(agent) == "ab"
    retried = await _append(gateway, "b", "k")
    assert (retried.status_code, retried.json()["value"]) == (200, "ab")
    assert (await _append(gateway, "b", "k2")).json()["value"] == "abb"


async def test_without_redis_an_append_is_a_503_and_changes_nothing(agent: Agent, gateway: Gateway) -> None:
    await agent.put(KEY, "a")
    async with beside(gateway, **NO_REDIS) as cut_off:
        response = await cut_off.client.patch(PATH, json={"append": "b"})
    assert response.status_code == 503
    assert "redis is unavailable" in response.json()["detail"]
    assert await _value(agent) == "a"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"append": ""}, "append"),
        ({"append": ["a"]}, "append"),
        ({"append": "a", "value": "b"}, "value"),
        ({"append": "a", "ttl_seconds": 0}, "ttl_seconds"),
        ({}, "append"),
    ],
)
async def test_a_body_that_is_no_append_is_refused(
    agent: Agent, gateway: Gateway, body: Any, field: str
) -> None:
    await agent.put(KEY, "a")
    response = await gateway.client.patch(PATH, json=body)
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field)
    assert await _value(agent) == "a"
