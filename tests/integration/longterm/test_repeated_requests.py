"""A request that is repeated with its Idempotency-Key indexes records that its first attempt could not."""

from http import HTTPStatus
from typing import Any

from tests.agent import Agent
from tests.conftest import Gateway
from tests.second_gateway import beside
from tests.sql import sql

IDEMPOTENCY_HEADER = {"idempotency-key": "k"}


async def kinds_to_index(gateway: Gateway) -> list[str]:
    await gateway.resources.index_writer.close()
    return [row.kind for row in await sql(gateway, "SELECT kind FROM job WHERE stage = 'index'")]


async def test_a_memory_is_found_at_once_after_a_repeated_save(
    agent: Agent, without_index: Agent, gateway: Gateway
) -> None:
    request: dict[str, Any] = {
        "json": {"content": "Ada likes trains."},
        "headers": IDEMPOTENCY_HEADER,
        "status": HTTPStatus.CREATED,
    }
    first = await without_index.request("POST", "/v1/memories", **request)
    assert await agent.search_contents("trains") == []
    assert await agent.request("POST", "/v1/memories", **request) == first
    assert await agent.search_contents("trains") == ["Ada likes trains."]
    assert await kinds_to_index(gateway) == []


async def test_memories_are_found_at_once_after_a_repeated_batch_with_a_rejected_item(
    agent: Agent, without_index: Agent, gateway: Gateway
) -> None:
    bodies = [{"content": "Ada likes trains."}, {"content": " "}, {"content": "Bob likes trains."}]
    request: dict[str, Any] = {
        "json": {"memories": bodies},
        "headers": IDEMPOTENCY_HEADER,
        "status": HTTPStatus.CREATED,
    }
    first = await without_index.request("POST", "/v1/memories/batch", **request)
    assert await agent.request("POST", "/v1/memories/batch", **request) == first
    assert set(await agent.search_contents("trains")) == {"Ada likes trains.", "Bob likes trains."}
    assert await kinds_to_index(gateway) == []


async def test_a_turn_is_found_at_once_after_a_repeated_context_request(
    agent: Agent, without_index: Agent, gateway: Gateway
) -> None:
    session = await agent.session()
    request: dict[str, Any] = {"json": {"message": "Where is the lantern?"}, "headers": IDEMPOTENCY_HEADER}
    path = f"/v1/sessions/{session}/context"
    first = await without_index.request("POST", path, **request)
    assert await agent.search_turn_contents("lantern") == []
    assert await agent.request("POST", path, **request) == first
    assert await agent.search_turn_contents("lantern") == ["Where is the lantern?"]
    assert await kinds_to_index(gateway) == []


async def test_a_repeated_save_does_not_process_jobs_that_a_worker_has_claimed(
    agent: Agent, without_index: Agent, gateway: Gateway
) -> None:
    request: dict[str, Any] = {
        "json": {"content": "Ada likes trains."},
        "headers": IDEMPOTENCY_HEADER,
        "status": HTTPStatus.CREATED,
    }
    await without_index.request("POST", "/v1/memories", **request)
    await sql(gateway, "UPDATE job SET lease_token = gen_random_uuid()")
    await agent.request("POST", "/v1/memories", **request)
    assert await agent.search_contents("trains") == []


async def test_a_repeated_save_succeeds_while_the_index_is_unavailable(
    gateway: Gateway, agent: Agent, unused_url: str
) -> None:
    request: dict[str, Any] = {
        "json": {"content": "Ada likes trains."},
        "headers": IDEMPOTENCY_HEADER,
        "status": HTTPStatus.CREATED,
    }
    async with beside(gateway, qdrant_url=unused_url) as without_index:
        first = await without_index.request("POST", "/v1/memories", **request)
        assert await without_index.request("POST", "/v1/memories", **request) == first
    assert await kinds_to_index(gateway) == ["memory"]
