"""A request with an Idempotency-Key is executed once; indexing it could not finish is left to the worker."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from services.local import ports
from shared.foundation import errors
from shared.jobs.table import job
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from tests.conftest import Gateway
from tests.second_gateway import beside

KEY = IdempotencyKey("POST /v1/things", "k", b"digest")
RESPONSE = {"id": "0123456789ab"}
keyed_or_not = pytest.mark.parametrize("key", [KEY, None], ids=["keyed", "without a key"])


async def _do(
    gateway: Gateway, key: IdempotencyKey | None, *responses: Any, failure: Exception | None = None
) -> Any | None:
    """Execute a request in its own transaction, and return the response that was stored before."""
    async with (
        gateway.resources.postgres.for_tenant(gateway.tenant) as tx,
        idempotent(tx, key) as request,
    ):
        for response in responses:
            await request.store(response, record_ids=["a"], user_id="ada")
        if failure is not None:
            raise failure
        return request.stored


async def test_a_response_is_stored_with_the_work_and_found_when_it_is_asked_for_again(
    gateway: Gateway,
) -> None:
    assert await _do(gateway, KEY, RESPONSE) is None
    assert await _do(gateway, KEY) == RESPONSE
    assert await _do(gateway, IdempotencyKey(KEY.route, "another", KEY.digest), RESPONSE) is None
    with pytest.raises(errors.Conflict, match="another body"):
        await _do(gateway, IdempotencyKey(KEY.route, KEY.key, b"other"), RESPONSE)


async def test_without_a_key_every_request_is_done(gateway: Gateway) -> None:
    assert [await _do(gateway, None, RESPONSE) for _ in range(2)] == [None, None]


@keyed_or_not
async def test_a_request_that_ends_without_a_response_is_a_programming_error(
    gateway: Gateway, key: IdempotencyKey | None
) -> None:
    with pytest.raises(RuntimeError, match="without a response"):
        await _do(gateway, key)
    assert await _do(gateway, key, RESPONSE) is None, "the key stays free"


@keyed_or_not
async def test_a_request_has_one_response(gateway: Gateway, key: IdempotencyKey | None) -> None:
    with pytest.raises(RuntimeError, match="already"):
        await _do(gateway, key, RESPONSE, RESPONSE)


@pytest.mark.parametrize("responses", [(), (RESPONSE,)], ids=["nothing stored", "stored"])
async def test_a_failure_passes_through_and_leaves_the_key_free(
    gateway: Gateway, responses: tuple[Any, ...]
) -> None:
    with pytest.raises(errors.LimitReached, match="full"):
        await _do(gateway, KEY, *responses, failure=errors.LimitReached("full"))
    assert await _do(gateway, KEY, RESPONSE) is None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("memories", {"content": "Ada likes trains."}),
        ("memories/batch", {"memories": [{"content": "Ada likes trains."}]}),
        ("memories/by-key?key=k", {"content": "Ada likes trains."}),
        ("sessions/s/turns", {"role": "user", "content": "Ada likes trains."}),
        ("sessions/s/context", {"message": "Ada likes trains."}),
        ("sessions/s/observations", {"kind": "fact", "content": "Ada likes trains."}),
    ],
)
async def test_a_repeated_request_indexes_what_the_first_try_left_unindexed(
    gateway: Gateway, path: str, body: dict[str, Any]
) -> None:
    await gateway.client.post("/v1/sessions", json={"id": "s"})
    method = "PUT" if "by-key" in path else "POST"
    request: dict[str, Any] = {"json": body, "headers": {"idempotency-key": uuid4().hex}}
    async with beside(gateway, qdrant_url=f"http://127.0.0.1:{ports.pick_free_port()}") as without_qdrant:
        first = await without_qdrant.client.request(method, f"/v1/{path}", **request)
    assert first.is_success, first.text
    assert await _unindexed(gateway) == 1
    repeated = await gateway.client.request(method, f"/v1/{path}", **request)
    assert (repeated.status_code, repeated.json()) == (first.status_code, first.json())
    await gateway.resources.index_writer.close()
    assert await _unindexed(gateway) == 0


async def _unindexed(gateway: Gateway) -> int:
    """Return the number of records whose points are still to be written."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        statement = select(job.c.id).where(job.c.tenant == gateway.tenant, job.c.stage == "index")
        return len((await tx.execute(statement)).all())
