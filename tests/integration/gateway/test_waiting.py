"""A write that waits is answered when search finds it in every way, or says what is missing."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import func, update

from shared.foundation import config, errors
from shared.foundation.stages import RecordKind
from shared.infra import prepared
from shared.jobs import written_records
from shared.jobs.table import job
from shared.jobs.written_records import WrittenRecords
from tests.conftest import Gateway, running_gateway
from tests.draining import drain
from tests.standins.models import ModelServer

WAIT = {"wait": "searchable", "timeout_seconds": "20"}
SHORT = WAIT | {"timeout_seconds": "0.3"}


@pytest.fixture
async def embedding_gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer
) -> AsyncIterator[Gateway]:
    """A gateway with an embedding model, and no workers but those that a test runs."""
    settings = make_settings(
        apart=True, embedding_base_url=models.url, embedding_model="m", embedding_dimension=64
    )
    async with running_gateway(settings, f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


async def writes(client: httpx.AsyncClient) -> list[tuple[str, str, dict[str, Any], int]]:
    """Return a write to every route that can wait: method, path, body and its usual status."""
    session = (await client.post("/v1/sessions", json={})).json()["id"]
    memory = (await client.post("/v1/memories", json={"content": "first"})).json()["id"]
    archived = (await client.post("/v1/memories", json={"content": "second"})).json()["id"]
    await client.post(f"/v1/memories/{archived}/archive")
    changed = (await client.post("/v1/memories", json={"content": "third"})).json()
    await client.patch(f"/v1/memories/{changed['id']}", json={"content": "fourth"})
    turn = {"role": "user", "content": "said"}
    preference = {"condition": {"description": "wished"}, "effect": {"template": "given"}}
    playbook = {"flow_dact": "f", "slots": {}, "tool_calls": [], "outcome": "success", "user_query": "asked"}
    await client.post(f"/v1/sessions/{session}/scratchpad", json={"content": "kept in mind"})
    return [
        ("POST", "/v1/memories", {"content": "one"}, 201),
        ("POST", "/v1/memories/batch", {"memories": [{"content": "two"}, {"content": "three"}]}, 201),
        ("PUT", "/v1/memories/by-key?key=k", {"content": "under a key"}, 201),
        ("PATCH", f"/v1/memories/{memory}", {"content": "other"}, 200),
        ("POST", f"/v1/memories/{archived}/restore", {}, 200),
        ("POST", f"/v1/memories/{changed['id']}/revert", {"version": changed["version"]}, 200),
        ("POST", f"/v1/sessions/{session}/turns", turn, 201),
        ("PATCH", f"/v1/sessions/{session}/turns/1", {"content": "heard"}, 200),
        ("POST", f"/v1/sessions/{session}/turns/batch", {"turns": [turn, turn]}, 201),
        ("POST", f"/v1/sessions/{session}/observations", {"kind": "fact", "content": "seen"}, 201),
        ("POST", f"/v1/sessions/{session}/scratchpad/promote", {"to": "preference"}, 200),
        ("POST", f"/v1/sessions/{session}/report", {"title": "Report", "content": "told"}, 201),
        ("PUT", "/v1/preferences/k", preference, 200),
        ("POST", "/v1/playbooks", playbook, 201),
        ("PUT", "/v1/skills/bake-bread", {"content": "Knead the dough."}, 200),
        ("PUT", f"/v1/working/session/{session}/note", {"value": "noted"}, 200),
        ("PATCH", f"/v1/working/session/{session}/note", {"append": "more"}, 200),
    ]


async def test_every_route_that_can_wait_is_tested(gateway: Gateway) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    tested = [(method, path.partition("?")[0]) for method, path, _, _ in await writes(gateway.client)]
    for path, operations in document["paths"].items():
        pattern = re.compile(re.sub(r"{\w+}", ".+" if path == "/v1/working/{key}" else "[^/]+", path))
        for method, operation in operations.items():
            if any(parameter["name"] == "wait" for parameter in operation.get("parameters", [])):
                assert any(m == method.upper() and pattern.fullmatch(p) for m, p in tested), (
                    f"{method} {path}"
                )


async def test_without_a_model_a_write_that_waits_is_answered_as_usual(gateway: Gateway) -> None:
    for method, path, body, status in await writes(gateway.client):
        url = httpx.URL(path).copy_merge_params(WAIT)
        response = await gateway.client.request(method, url, json=body)
        assert response.status_code == status, f"{method} {path}: {response.text}"
        assert "pending" not in response.json()


async def test_while_workers_are_away_the_answer_says_what_is_pending(embedding_gateway: Gateway) -> None:
    for method, path, body, _ in await writes(embedding_gateway.client):
        url = httpx.URL(path).copy_merge_params(SHORT)
        response = await embedding_gateway.client.request(method, url, json=body)
        assert response.status_code == 202, f"{method} {path}: {response.text}"
        # A promoted memory has a preference beside it.
        written = 2 if path.endswith("/promote") else len(body.get("memories", body.get("turns", [0])))
        assert response.json()["pending"] == {"embedding": written}, path
        assert int(response.headers["content-length"]) == len(response.content)


async def test_a_write_that_waits_is_answered_when_its_embedding_is_there(embedding_gateway: Gateway) -> None:
    client = embedding_gateway.client
    request = asyncio.create_task(client.post("/v1/memories", json={"content": "green"}, params=WAIT))
    while not request.done():
        await drain(embedding_gateway.resources)
        await asyncio.sleep(0.01)
    response = await request
    assert response.status_code == 201
    found = (await client.post("/v1/memories/search", json={"query": "green"})).json()
    assert [hit["id"] for hit in found["results"]] == [response.json()["id"]]
    assert found["stages"] == ["bm25", "dense"]


async def test_a_repeated_request_waits_for_what_the_first_try_wrote(embedding_gateway: Gateway) -> None:
    options: dict[str, Any] = {"json": {"content": "green"}, "headers": {"idempotency-key": "k"}}
    first = await embedding_gateway.client.post("/v1/memories", params=SHORT, **options)
    repeated = await embedding_gateway.client.post("/v1/memories", params=SHORT, **options)
    assert (first.status_code, repeated.status_code) == (202, 202)
    assert repeated.json() == first.json()


async def test_a_request_that_failed_or_wrote_nothing_does_not_wait(embedding_gateway: Gateway) -> None:
    started = time.monotonic()
    client = embedding_gateway.client
    assert (await client.post("/v1/memories", json={"content": ""}, params=WAIT)).status_code == 422
    memory = (await client.post("/v1/memories", json={"content": "x"})).json()["id"]
    unchanged = await client.patch(f"/v1/memories/{memory}", json={"content": "x"}, params=WAIT)
    assert unchanged.status_code == 200
    assert time.monotonic() - started < 10


async def test_a_refused_write_is_answered_with_its_refusal_whatever_is_pending(
    embedding_gateway: Gateway,
) -> None:
    """An append enqueues its index job before it knows that its condition is not met."""
    client = embedding_gateway.client
    await client.put("/v1/working/session/s/note", json={"value": "noted"})
    headers = {"if-match": '"1"'}
    response = await client.patch(
        "/v1/working/session/s/note", json={"append": "more"}, headers=headers, params=SHORT
    )
    assert response.status_code == 412, response.text


async def test_what_is_dead_is_named_as_pending_and_not_waited_for(embedding_gateway: Gateway) -> None:
    saved = (await embedding_gateway.client.post("/v1/memories", json={"content": "x"})).json()
    await embedding_gateway.resources.index_writer.close()
    tenant, postgres = embedding_gateway.tenant, embedding_gateway.resources.postgres
    written = WrittenRecords(tenant, {(RecordKind.MEMORY, saved["id"])})
    async with postgres.for_tenant(tenant) as tx:
        await tx.execute(update(job).values(dead_at=func.now()))
    started = time.monotonic()
    assert await written_records.wait_until_searchable(postgres, written, 20) == {"embedding": 1}
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"wait": "embedded"}, "wait"),
        ({"wait": "searchable", "timeout_seconds": "31"}, "timeout_seconds"),
        ({"wait": "searchable", "timeout_seconds": "0"}, "timeout_seconds"),
        ({"wait": "searchable", "timeout_seconds": "nan"}, "timeout_seconds"),
    ],
)
async def test_an_unknown_value_is_refused_and_stores_nothing(
    gateway: Gateway, query: dict[str, str], field: str
) -> None:
    response = await gateway.client.post("/v1/memories", json={"content": "x"}, params=query)
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field
    assert (await gateway.client.get("/v1/memories")).json()["results"] == []


async def test_a_route_that_can_not_wait_refuses_to(gateway: Gateway) -> None:
    assert (await gateway.client.get("/v1/memories", params=WAIT)).status_code == 422


async def test_waiting_asks_postgres_a_bounded_number_of_times(
    embedding_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    send = prepared.send

    async def count(connection: Any, sql: str, arguments: Any) -> Any:
        nonlocal asked
        asked += "bool_and" in sql
        return await send(connection, sql, arguments)

    monkeypatch.setattr(prepared, "send", count)
    query = WAIT | {"timeout_seconds": "2"}
    await embedding_gateway.client.post("/v1/memories", json={"content": "x"}, params=query)
    assert 2 <= asked <= 14


async def test_a_saved_record_is_acknowledged_though_postgres_fails_while_waiting(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> Any:
        raise errors.Unavailable("postgres", "gone")

    monkeypatch.setattr(written_records, "_count_pending", fail)
    response = await gateway.client.post("/v1/memories", json={"content": "x"}, params=SHORT)
    assert (response.status_code, response.json()["pending"]) == (202, {"index": 1})
