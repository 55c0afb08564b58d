"""A batch runs requests in order, each with its own result, and with no more rights than its key."""

from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import httpx
import pytest

from services.gateway.batch import key_of_operation
from shared.jobs import status as job_status
from shared.platform.auth import api_keys
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.idempotency.idempotent import IdempotencyKey
from tests.conftest import Gateway

Result = dict[str, Any]


def op(method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
    operation: dict[str, Any] = {"method": method, "path": path}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return operation | ({} if body is None else {"body": body}) | ({"headers": named} if named else {})


async def run(client: httpx.AsyncClient, *operations: dict[str, Any], key: str | None = None) -> list[Result]:
    headers = {"idempotency-key": key} if key else {}
    response = await client.post("/v1/batch", json={"operations": [*operations]}, headers=headers)
    assert response.status_code == 200, response.text
    results: list[Result] = response.json()["results"]
    return results


async def test_operations_run_in_order_and_a_failing_one_does_not_stop_the_rest(gateway: Gateway) -> None:
    memory = {"content": "The gate closes at nine.", "user_id": "ada"}
    session = f"s-{uuid4().hex}"
    results = await run(
        gateway.client,
        op("POST", "/v1/memories", memory),
        op("GET", "/v1/memories/none"),
        op("POST", "/v1/memories", {"content": ""}),
        op("BREW", "/v1/memories"),
        op("POST", "/v1/sessions", {"id": session}),
        op("PUT", f"/v1/sessions/{session}/collections/a%20plan", {"type": "doc", "value": {}}),
        op("GET", f"/v1/sessions/{session}/collections/a%20plan"),
        op("GET", "/v1/memories?user_id=ada&limit=1"),
        op("GET", "/v1/memories?colour=red"),
        op("DELETE", "/v1/nowhere"),
        op("PATCH", "/v1/sessions"),
    )
    assert [result["status"] for result in results] == [201, 404, 422, 422, 201, 200, 200, 200, 422, 404, 405]
    assert results[5]["headers"]["etag"] == results[6]["headers"]["etag"]
    [listed] = results[7]["body"]["results"]
    assert listed["id"] == results[0]["body"]["id"]
    assert results[2]["body"]["errors"][0]["field"] == "content"
    assert results[10]["headers"]["allow"] == "GET, POST"


async def test_conditions_of_an_operation_hold(gateway: Gateway) -> None:
    path = f"/v1/sessions/s-{uuid4().hex}"
    await run(gateway.client, op("POST", "/v1/sessions", {"id": path.rpartition("/")[2]}))
    put = ("PUT", f"{path}/collections/plan", {"type": "doc", "value": {}})
    statuses = [
        result["status"]
        for result in await run(
            gateway.client, op(*put, if_none_match="*"), op(*put, if_none_match="*"), op(*put, if_match='"1"')
        )
    ]
    assert statuses == [200, 412, 412]


async def test_a_repeated_batch_does_its_operations_once(gateway: Gateway) -> None:
    session = f"s-{uuid4().hex}"
    await run(gateway.client, op("POST", "/v1/sessions", {"id": session}))
    turn = op("POST", f"/v1/sessions/{session}/turns", {"role": "user", "content": "Hello"})
    first = await run(gateway.client, turn, turn, key="once")
    assert await run(gateway.client, turn, turn, key="once") == first
    assert [result["body"]["seq"] for result in first] == [1, 2]
    other = await gateway.client.post(
        "/v1/batch", json={"operations": [turn]}, headers={"idempotency-key": "once"}
    )
    assert other.status_code == 409


async def test_a_repetition_does_not_overtake_the_first_try(gateway: Gateway) -> None:
    operations = [op("POST", "/v1/memories", {"content": text}) for text in ("first", "second")]
    batch: dict[str, Any] = {"json": {"operations": operations}, "headers": {"idempotency-key": "lost"}}
    derived = key_of_operation(IdempotencyKey("", "lost", b""), 0)
    assert derived is not None
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        assert await idempotency_queries.try_lock(tx, "POST /v1/memories", derived)
        early = await gateway.client.post("/v1/batch", **batch)
    assert (early.status_code, early.headers["retry-after"]) == (409, "1")
    assert (await gateway.client.get("/v1/memories")).json()["results"] == []
    later = (await gateway.client.post("/v1/batch", **batch)).json()["results"]
    assert [result["status"] for result in later] == [201, 201]


async def test_an_own_key_of_an_operation_concerns_only_that_operation(gateway: Gateway) -> None:
    memory = op("POST", "/v1/memories", {"content": "first"}, idempotency_key="own")
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        assert await idempotency_queries.try_lock(tx, "POST /v1/memories", "own")
        results = await run(gateway.client, memory, op("GET", "/v1/status"), key="batch")
    assert [result["status"] for result in results] == [409, 200]


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (op("POST", "/v1/batch", {"operations": []}), "a request of its own"),
        (op("GET", "/v1/export"), "a request of its own"),
        (op("GET", "/v1/memories/export"), "a request of its own"),
        (op("POST", "/v1/import"), "a request of its own"),
        (op("PUT", "/v1/agents/a/files/f", "x"), "a request of its own"),
        (op("GET", "/v1/agents/a/files/f"), "a request of its own"),
        (op("GET", "/v1/spend?format=csv"), "its response is no JSON"),
        (op("POST", "/v1/memories?wait=searchable", {"content": "x"}), "wait"),
        (op("GET", "/v1/memories#x"), "fragment"),
        (op("GET", "/metrics"), "path"),
        (op("GET", "/v1/memories", authorization="Bearer other"), "headers"),
        (op("GET", "/v1/memories", if_match="a\nb"), "headers"),
        (op("GET", "/v1/memories", if_match="ä"), "headers"),
        (op("GET", "/v1/tools", loci_user="a\nb"), "headers"),
        (op("GET", "/v1/tools", loci_user="a", **{"Loci-User": "b"}), "once"),
        (op("GET", "/v1/memories/a%0Ab"), "control characters"),
        (op("GET", "/v1/memories?cursor=%00"), "NUL"),
        ({"method": "GET", "path": "/v1/memories", "colour": "red"}, "colour"),
        ("GET /v1/memories", "body"),
    ],
)
async def test_what_can_not_be_an_operation_is_refused_by_itself(
    gateway: Gateway, operation: Any, text: str
) -> None:
    if isinstance(operation, str):
        response = await gateway.client.post("/v1/batch", json={"operations": [operation]})
        assert response.status_code == 422
        return
    refused, other = await run(gateway.client, operation, op("GET", "/v1/status"))
    assert refused["status"] == 422
    assert text in refused["body"]["detail"]
    assert other["status"] == 200


async def test_sizes_are_limited_for_the_batch_and_for_each_operation(gateway: Gateway) -> None:
    many = {"operations": [op("GET", "/v1/status")] * 101}
    assert (await gateway.client.post("/v1/batch", json=many)).status_code == 422
    assert (await gateway.client.post("/v1/batch", json={"operations": []})).status_code == 422
    large = op("POST", "/v1/memories", {"content": "x" * 1_100_000})
    small = op("POST", "/v1/memories", {"content": "small"})
    assert [result["status"] for result in await run(gateway.client, large, small)] == [413, 201]
    huge = {"operations": [large] * 40}
    assert (await gateway.client.post("/v1/batch", json=huge)).status_code == 413


async def test_an_operation_has_the_rights_of_the_key_and_no_more(gateway: Gateway) -> None:
    saved = await gateway.client.post("/v1/memories", json={"content": "common"})
    memory = f"/v1/memories/{saved.json()['id']}"
    async with await gateway.new_client(user_id="ada", rights=["read", "write"]) as ada:
        results = await run(
            ada,
            op("GET", memory),
            op("DELETE", memory),
            op("DELETE", "/v1/users/ada"),
            op("GET", "/v1/agents/a"),
        )
    assert [result["status"] for result in results] == [200, 403, 403, 403]
    async with await gateway.new_client(rights=["read"]) as reader:
        assert [result["status"] for result in await run(reader, op("DELETE", memory))] == [403]
    async with await gateway.new_client(namespace="patrol/x") as bound:
        entry = op("PUT", "/v1/working/patrol/x/a", {"value": "1"})
        assert [result["status"] for result in await run(bound, entry, op("GET", memory))] == [200, 403]
    refused = await gateway.client.post(
        "/v1/batch", json={"operations": [op("GET", memory)]}, headers={"authorization": "Bearer wrong"}
    )
    assert refused.status_code == 401


async def test_a_key_that_is_revoked_ends_the_batch(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await api_keys.issue(gateway.resources.postgres, gateway.tenant, rights=["read", "write"])
    status = job_status.tenant_status

    async def revoke_and_read(*arguments: Any) -> Any:
        assert await api_keys.revoke(gateway.resources.postgres, key.split("_")[1])
        return await status(*arguments)

    monkeypatch.setattr(job_status, "tenant_status", revoke_and_read)
    body = {"operations": [op("GET", "/v1/memories"), op("GET", "/v1/status"), op("GET", "/v1/memories")]}
    headers = {"authorization": f"Bearer {key}"}
    monkeypatch.setattr("services.gateway.batch._KEY_SECONDS", 0)
    results = (await gateway.client.post("/v1/batch", json=body, headers=headers)).json()["results"]
    assert [result["status"] for result in results] == [200, 200, 401]
    assert results[2]["body"]["detail"] == "the key is unknown, expired or revoked"


async def test_a_quick_batch_looks_its_key_up_once(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.gateway.batch._KEY_SECONDS", 600)
    look_ups = AsyncMock(side_effect=api_keys.authenticate)
    monkeypatch.setattr(api_keys, "authenticate", look_ups)
    await run(gateway.client, *[op("GET", "/v1/status")] * 5)
    assert look_ups.await_count == 1


async def test_tools_act_for_whom_the_operation_names_or_else_the_batch(gateway: Gateway) -> None:
    def save(text: str, **headers: str) -> dict[str, Any]:
        return op("POST", "/v1/tools/memory_add", {"arguments": {"content": text}}, **headers)

    operations = [save("of the batch"), save("of its own", loci_user="Zoë")]
    response = await gateway.client.post(
        "/v1/batch", json={"operations": operations}, headers={"loci-user": "ada", "loci-agent": "inn"}
    )
    assert [result["status"] for result in response.json()["results"]] == [200, 200], response.text
    for user, content in (("ada", "of the batch"), ("Zoë", "of its own")):
        listed = await gateway.client.get("/v1/memories", params={"user_id": user, "agent_id": "inn"})
        assert [memory["content"] for memory in listed.json()["results"]] == [content]
    assert (await gateway.client.get("/v1/memories?agent_id=inn")).json()["results"] == []


async def test_an_operation_chooses_nobody_whom_the_key_may_not_act_for(gateway: Gateway) -> None:
    listing = op("GET", "/v1/tools")
    async with await gateway.new_client(user_id="ada", rights=["read", "write"]) as ada:
        own = [listing, {**listing, "headers": {"Loci-User": "bob"}}]
        assert [result["status"] for result in await run(ada, *own)] == [200, 403]
        body = {"operations": [listing, {**listing, "headers": {"Loci-User": "ada"}}]}
        response = await ada.post("/v1/batch", json=body, headers={"loci-user": "bob"})
        assert [result["status"] for result in response.json()["results"]] == [403, 200]


async def test_operations_are_counted_under_their_routes(gateway: Gateway) -> None:
    counter = 'loci_http_requests_total{method="GET",route="/v1/memories/{memory_id}",status="404"}'

    async def count() -> float:
        lines = (await gateway.client.get("/metrics")).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(counter))

    before = await count()
    await run(gateway.client, *[op("GET", "/v1/memories/none")] * 3)
    assert await count() == before + 3
