"""Several writers of one record: the index keeps the newest version, in whatever order they come to write."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

import httpx
import pytest

from shared.foundation import errors
from shared.foundation.stages import RecordKind
from shared.lifecycle import removal
from shared.search.index.writer import IndexWriter
from tests.integration.sweep.stack import TestStack

Request = Callable[[], Awaitable[httpx.Response]]
Overtake = Callable[[Request, Request], Awaitable[None]]
CONTENT = "The heron nests by the weir."


class Events(NamedTuple):
    """What the slow request and its test wait for."""

    is_waiting: asyncio.Event
    may_write: asyncio.Event


@pytest.fixture
def overtake(monkeypatch: pytest.MonkeyPatch) -> Overtake:
    """Return a function that lets a fast request pass a slow one.

    The slow request has written its record but not yet the index when the fast one begins, and goes on
    when the fast one is answered.
    """
    write_through, work_off = IndexWriter.write_through, removal.work_off
    # What follows a commit runs in a task of its own, which has the context of its request.
    events_of_slow: ContextVar[Events | None] = ContextVar("events_of_slow", default=None)

    async def wait_if_slow() -> None:
        events = events_of_slow.get()
        if events is not None and not events.is_waiting.is_set():
            events.is_waiting.set()
            await asyncio.wait_for(events.may_write.wait(), 30)

    async def write_later(writer: IndexWriter, *args: Any, **options: Any) -> bool:
        await wait_if_slow()
        return await write_through(writer, *args, **options)

    async def remove_later(*args: Any, **options: Any) -> errors.Unavailable | None:
        await wait_if_slow()
        return await work_off(*args, **options)

    monkeypatch.setattr(IndexWriter, "write_through", write_later)
    monkeypatch.setattr(removal, "work_off", remove_later)

    async def pass_by(slow: Request, fast: Request) -> None:
        events = Events(asyncio.Event(), asyncio.Event())
        context = contextvars.copy_context()
        context.run(events_of_slow.set, events)
        slow_task = asyncio.create_task(_send(slow), context=context)
        await asyncio.wait_for(events.is_waiting.wait(), 30)
        await _send(fast)
        events.may_write.set()
        await slow_task

    return pass_by


async def _send(request: Request) -> None:
    response = await request()
    assert response.status_code < 300, response.text


async def _found_values(stack: TestStack, query: str) -> list[str]:
    response = (await stack.client.post("/v1/working/search", json={"query": query})).json()
    assert response["degraded"] == []
    return [result["key"] for result in response["results"]]


async def test_a_late_save_of_a_fact_leaves_the_point_of_the_newer_version(
    stack: TestStack, overtake: Overtake
) -> None:
    body: dict[str, Any] = {"content": CONTENT, "enrich": False}
    memory_id = await stack.save(**body)
    await overtake(
        lambda: stack.client.post("/v1/memories", json=body | {"tags": ["early"]}),
        lambda: stack.client.post("/v1/memories", json=body | {"tags": ["late"]}),
    )
    assert await stack.search("heron") == [memory_id]
    await stack.process_all()
    assert await stack.points() == {(memory_id, 3)}


async def test_a_late_change_of_a_memory_leaves_the_point_of_the_newer_version(
    stack: TestStack, overtake: Overtake
) -> None:
    memory_id = await stack.save(CONTENT)
    path = f"/v1/memories/{memory_id}"
    await overtake(
        lambda: stack.client.patch(path, json={"content": "The heron nests by the mill."}),
        lambda: stack.client.patch(path, json={"content": "The heron nests by the bridge."}),
    )
    assert await stack.search("bridge") == [memory_id]
    assert await stack.search("mill") == []


async def test_a_late_write_of_a_working_key_leaves_the_point_of_the_newer_value(
    stack: TestStack, overtake: Overtake
) -> None:
    path, key = "/v1/working/session/s/place", "session/s/place"
    await overtake(
        lambda: stack.client.put(path, json={"value": "by the mill"}),
        lambda: stack.client.put(path, json={"value": "by the bridge"}),
    )
    assert await _found_values(stack, "bridge") == [key]
    assert await _found_values(stack, "mill") == []
    assert (await stack.sweep()).orphan_points == 1
    assert len(await stack.points(RecordKind.WORKING)) == 1
    assert await _found_values(stack, "bridge") == [key]


async def test_a_late_deletion_of_a_working_key_leaves_the_point_of_the_newer_value(
    stack: TestStack, overtake: Overtake
) -> None:
    path, key = "/v1/working/session/s/place", "session/s/place"
    await stack.put_working(key, "by the weir")
    await overtake(
        lambda: stack.client.delete(path), lambda: stack.client.put(path, json={"value": "by the bridge"})
    )
    assert await _found_values(stack, "bridge") == [key]
    assert len(await stack.points(RecordKind.WORKING)) == 1


async def test_a_session_that_is_being_deleted_can_be_opened_again_when_its_points_are_gone(
    stack: TestStack, overtake: Overtake
) -> None:
    session = await stack.open_session(id="harbour")
    await stack.add_turn(session, CONTENT)

    async def open_too_early() -> httpx.Response:
        response = await stack.client.post("/v1/sessions", json={"id": "harbour"})
        assert response.status_code == 409, response.text
        return await stack.client.get("/v1/status")

    await overtake(lambda: stack.client.delete(f"/v1/sessions/{session}"), open_too_early)
    await stack.process_all()
    await stack.open_session(id="harbour")
    await stack.add_turn(session, "The otter sleeps by the weir.")
    response = await stack.client.post("/v1/turns/search", json={"query": "otter"})
    assert [result["seq"] for result in response.json()["results"]] == [1]
    assert len(await stack.points(RecordKind.TURN)) == 1


async def test_a_memory_imported_under_a_deleted_id_is_newer_than_the_deleted_one(
    stack: TestStack, overtake: Overtake
) -> None:
    memory_id = await stack.save(CONTENT)
    exported = (await stack.client.get("/v1/memories/export")).content
    await overtake(
        lambda: stack.client.delete(f"/v1/memories/{memory_id}"),
        lambda: stack.client.post("/v1/memories/import?restore=true", content=exported),
    )
    assert await stack.search("heron") == [memory_id]
    await stack.process_all()
    assert await stack.search("heron") == [memory_id]


async def test_writers_of_one_key_at_once_leave_the_last_value_searchable(stack: TestStack) -> None:
    key = "session/s/place"
    for attempt in range(10):
        await asyncio.gather(*(stack.put_working(key, f"place{attempt}x{writer}") for writer in range(4)))
        value = (await stack.client.get(f"/v1/working/{key}")).json()["value"]
        assert await _found_values(stack, value) == [key]


async def test_versions_of_a_working_key_rise_even_if_the_time_of_redis_does_not(stack: TestStack) -> None:
    """Two values of one version would have one point, which could keep the words of the older."""
    set_version = """
    local stored = redis.call('HGET', KEYS[1], ARGV[1])
    redis.call('HSET', KEYS[1], ARGV[1], (string.gsub(stored, '^%d+', ARGV[2])))
    """
    await stack.put_working("session/s/place", "by the weir")
    (name,) = [key async for key in stack.resources.redis.scan_iter(f"*{stack.tenant}:session/s}}:meta")]
    future = 4_000_000_000_000_000
    await stack.resources.redis.eval(set_version, 1, name, "session/s/place", future)
    await stack.put_working("session/s/place", "by the bridge")
    assert await _found_values(stack, "bridge") == ["session/s/place"]
    assert ("session/s/place", future + 1) in await stack.points(RecordKind.WORKING)
