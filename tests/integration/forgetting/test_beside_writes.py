"""What is written while something is deleted stays whole or goes whole; nothing is left that nobody owns."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from shared.conversation.state import scratch
from shared.lifecycle import erased_rows
from shared.memory.working import queries, write
from shared.memory.working.working_memory import WorkingMemory
from tests.agent import Agent
from tests.conftest import Gateway
from tests.draining import process_all
from tests.integration.forgetting.conftest import records_with
from tests.second_gateway import NO_REDIS, beside
from tests.state import StateInspector

SECRET = "marmalade"

NOTE: dict[str, Any] = {"value": SECRET, "ttl_seconds": 3000}
each_write = pytest.mark.parametrize(("method", "body"), [("PUT", NOTE), ("PATCH", {"append": SECRET})])


async def test_what_is_saved_while_a_user_is_erased_can_be_erased_whole(
    agent: Agent, gateway: Gateway, inspector: StateInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were committed after the erasure had looked lost their row alone; their history stayed."""
    await agent.save(f"The old jar holds {SECRET}.", user_id="ada")
    collect = erased_rows.collect

    async def collect_and_be_overtaken(*arguments: Any) -> Any:
        collected = await collect(*arguments)
        monkeypatch.undo()
        await agent.save(f"The new jar holds {SECRET}.", user_id="ada")
        session = await agent.session(user_id="ada", store_types=["tmp"])
        await agent.request("PUT", f"/v1/sessions/{session}/kv/note", json={"value": SECRET})
        await agent.put(f"session/{session}/note", SECRET)
        await agent.session(user_id="ada", kind="patrol", name="watch")
        await agent.put("patrol/watch/note", SECRET)
        return collected

    monkeypatch.setattr(erased_rows, "collect", collect_and_be_overtaken)
    await agent.request("DELETE", "/v1/users/ada")
    await process_all(gateway.resources)
    kept = (await agent.request("GET", "/v1/memories?user_id=ada"))["results"]
    assert [memory["content"] for memory in kept] == [f"The new jar holds {SECRET}."]
    assert (await agent.request("GET", "/v1/working/patrol/watch/note"))["value"] == SECRET
    await agent.request("DELETE", "/v1/users/ada")
    await process_all(gateway.resources)
    assert await records_with(inspector, gateway, SECRET) == []


@pytest.mark.parametrize("action", ["restore", "revert"])
async def test_a_memory_that_is_restored_while_its_user_is_erased_goes_with_the_user(
    agent: Agent, gateway: Gateway, inspector: StateInspector, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    memory = await agent.save(f"The old jar holds {SECRET}.", user_id="ada")
    path = f"/v1/memories/{memory['id']}"
    if action == "restore":
        await agent.request("POST", f"{path}/archive")
    else:
        await agent.request("PATCH", path, json={"content": "The old jar is empty."})
    body = {} if action == "restore" else {"version": 1}
    collect = erased_rows.collect
    tasks: list[asyncio.Task[httpx.Response]] = []

    async def collect_and_be_met(*arguments: Any) -> Any:
        collected = await collect(*arguments)
        if not tasks:
            tasks.append(asyncio.create_task(gateway.client.post(f"{path}/{action}", json=body)))
            await asyncio.wait(tasks, timeout=1)  # it may have to wait for the erasure
        return collected

    monkeypatch.setattr(erased_rows, "collect", collect_and_be_met)
    await agent.request("DELETE", "/v1/users/ada")
    [answer] = await asyncio.gather(*tasks)
    assert answer.status_code in {200, 404}
    await process_all(gateway.resources)
    assert await records_with(inspector, gateway, SECRET) == []


@each_write
@pytest.mark.parametrize("user", [None, "ada"], ids=["an unbound key", "a bound key"])
async def test_an_entry_written_while_its_session_is_deleted_goes_with_it(
    agent: Agent,
    gateway: Gateway,
    user: str | None,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    body: dict[str, str],
) -> None:
    """The deletion waits for the write, and then finds the entry."""
    session = await agent.session(user_id="ada")
    path = f"/v1/working/session/{session}/note"
    await agent.request("PUT", path, json=NOTE)
    name = {"PUT": "put", "PATCH": "append"}[method]
    is_writing, may_write, work = asyncio.Event(), asyncio.Event(), getattr(queries, name)

    async def write_late(*arguments: Any, **fields: Any) -> Any:
        is_writing.set()
        await may_write.wait()
        return await work(*arguments, **fields)

    monkeypatch.setattr(queries, name, write_late)
    async with await gateway.new_client(user_id=user) as client:
        writing = asyncio.create_task(client.request(method, path, json=body))
        await asyncio.wait_for(is_writing.wait(), 10)
        deleting = asyncio.create_task(gateway.client.delete(f"/v1/sessions/{session}"))
        await asyncio.wait([deleting], timeout=1)
        may_write.set()
        assert (await asyncio.wait_for(writing, 10)).status_code == 200
        assert (await asyncio.wait_for(deleting, 10)).status_code == 200
    await process_all(gateway.resources)
    assert (await gateway.client.get(path)).status_code == 404
    reopened = await gateway.client.post("/v1/sessions", json={"id": session, "user_id": "bob"})
    assert reopened.status_code == 201, reopened.text


@each_write
@pytest.mark.parametrize(
    ("user", "status"), [(None, 409), ("ada", 404)], ids=["an unbound key", "a bound key"]
)
async def test_nothing_is_written_for_a_session_that_was_deleted_since_the_request_began(
    agent: Agent,
    gateway: Gateway,
    user: str | None,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    body: dict[str, str],
) -> None:
    session = await agent.session(user_id="ada")
    enqueue = write._enqueue_index_jobs

    async def enqueue_and_be_overtaken(*arguments: Any, **fields: Any) -> Any:
        jobs = await enqueue(*arguments, **fields)
        monkeypatch.undo()
        await agent.request("DELETE", f"/v1/sessions/{session}")
        return jobs

    monkeypatch.setattr(write, "_enqueue_index_jobs", enqueue_and_be_overtaken)
    async with await gateway.new_client(user_id=user) as client:
        response = await client.request(method, f"/v1/working/session/{session}/note", json=body)
        assert response.status_code == status, response.text
    assert (
        await queries.list_entries(
            WorkingMemory.from_resources(gateway.resources, gateway.tenant), f"session/{session}"
        )
        == []
    )


async def test_a_signal_for_a_session_that_is_being_deleted_is_not_found(
    agent: Agent, gateway: Gateway
) -> None:
    """It broke a foreign key: a 500."""
    for attempt in range(10):
        session = await agent.session(id=f"s-{uuid4().hex[:8]}")
        body = {"type": "Correction", "summary": f"attempt {attempt}"}
        posting = [gateway.client.post(f"/v1/sessions/{session}/feedback", json=body) for _ in range(4)]
        *responses, deleted = await asyncio.gather(*posting, gateway.client.delete(f"/v1/sessions/{session}"))
        assert deleted.status_code == 200, deleted.text
        assert {response.status_code for response in responses} <= {201, 404}


async def test_nobody_reads_working_memory_that_is_still_to_be_cleared(
    agent: Agent, gateway: Gateway
) -> None:
    """As if Redis had been unavailable while the user was erased: the receipt says pending."""
    session = await agent.session(user_id="ada")
    await agent.put(f"session/{session}/note", SECRET)
    async with beside(gateway, **NO_REDIS) as cut_off:
        assert (await cut_off.request("DELETE", "/v1/users/ada"))["stores"]["redis"] == "pending"
    path = f"/v1/working/session/{session}/note"
    assert (await gateway.client.get(path)).status_code == 404
    assert await agent.list_keys("session") == []
    for query in (SECRET, None):
        found = await agent.request("POST", "/v1/working/search", json={"query": query})
        assert found["results"] == []
    refused = await gateway.client.put(path, json=NOTE)
    assert (refused.status_code, refused.headers["retry-after"]) == (409, "60")


async def test_nobody_reads_or_writes_a_scratch_store_that_is_still_to_be_deleted(
    agent: Agent, gateway: Gateway
) -> None:
    path = "/v1/stores/pad/kv/note?user_id=ada"
    await agent.request("PUT", path, json={"value": SECRET})
    async with beside(gateway, **NO_REDIS) as cut_off:
        assert (await cut_off.request("DELETE", "/v1/users/ada"))["stores"]["redis"] == "pending"
    for method, target, body in (
        ("GET", path, None),
        ("GET", "/v1/stores/pad/kv?user_id=ada", None),
        ("GET", "/v1/stores/pad?user_id=ada", None),
        ("PUT", path, {"value": "later"}),
    ):
        response = await gateway.client.request(method, target, json=body)
        assert response.status_code == 409, response.text
        assert SECRET not in response.text
    await process_all(gateway.resources)
    assert (await gateway.client.get(path)).status_code == 404
    await agent.request("PUT", path, json={"value": "later"})


async def test_an_erasure_waits_for_a_write_to_a_scratch_store_and_deletes_it(
    agent: Agent, gateway: Gateway, inspector: StateInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_registered, may_write, register = asyncio.Event(), asyncio.Event(), scratch._register

    async def register_and_wait(*arguments: Any) -> None:
        await register(*arguments)
        is_registered.set()
        await may_write.wait()

    monkeypatch.setattr(scratch, "_register", register_and_wait)
    path = "/v1/stores/pad/kv/note?user_id=ada"
    writing = asyncio.create_task(gateway.client.put(path, json={"value": SECRET}))
    await asyncio.wait_for(is_registered.wait(), 10)
    erasing = asyncio.create_task(gateway.client.delete("/v1/users/ada"))
    await asyncio.wait([erasing], timeout=1)
    may_write.set()
    assert (await asyncio.wait_for(writing, 10)).status_code == 200
    assert (await asyncio.wait_for(erasing, 10)).status_code == 200
    await process_all(gateway.resources)
    assert await records_with(inspector, gateway, SECRET) == []
