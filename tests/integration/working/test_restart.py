"""Working memory when its server crashes, is full or cannot be reached."""

import time
from collections.abc import Callable

import pytest
import redis
import redis.asyncio

from shared.foundation import config, errors
from shared.memory.working import queries as working_queries
from shared.memory.working.working_memory import WorkingMemory
from tests.integration.working.conftest import Server

pytestmark = pytest.mark.asyncio
_REDIS_DELAY_SECONDS = 2.0
"""How long Redis may put off a write to its file at most, with `appendfsync everysec`."""


async def test_entries_and_their_remaining_time_survive_a_crash(
    working_memory_to_crash: WorkingMemory, crash: Callable[[], None]
) -> None:
    written_entry = await working_queries.put(
        working_memory_to_crash, "session/abc/Doc", "x" * 20_000, category="c", tags=["t"]
    )
    await working_queries.put(working_memory_to_crash, "session/abc/short", "x", ttl_seconds=0.001)
    crash()
    (listing,) = await working_queries.list_entries(working_memory_to_crash)
    entry = await working_queries.get(working_memory_to_crash, "session/abc/doc", full=True)
    assert (entry.stored_at, entry.expires_at) == (written_entry.stored_at, written_entry.expires_at)
    assert listing.remaining < written_entry.remaining == 1200
    assert (entry.key, entry.value, entry.category, entry.tags) == (
        "session/abc/Doc",
        "x" * 20_000,
        "c",
        ("t",),
    )
    redis_keys = [
        redis_key async for redis_key in working_memory_to_crash.redis.scan_iter("testing:working:*")
    ]
    assert len(redis_keys) == 5
    for redis_key in redis_keys:
        assert 0 < await working_memory_to_crash.redis.pttl(redis_key) <= 1_260_000


async def test_a_kill_loses_no_acknowledged_write_but_those_of_the_last_two_seconds_at_most(
    working_memory_to_crash: WorkingMemory, server: Server
) -> None:
    """Nothing waits for the file here: Redis writes it at once, or later while it syncs an earlier write."""
    acknowledged_at: list[float] = []
    started_at = time.monotonic()
    while time.monotonic() < started_at + _REDIS_DELAY_SECONDS + 1:
        number = len(acknowledged_at)
        await working_queries.put(working_memory_to_crash, f"a/b/{number % 10}", str(number))
        acknowledged_at.append(time.monotonic())
    killed_at = time.monotonic()
    server.kill()
    server.start()
    entries = [entry async for entry in working_queries.iterate_entries(working_memory_to_crash)]
    numbers = sorted(int(entry.value) for entry in entries)
    assert numbers == list(range(numbers[-1] - 9, numbers[-1] + 1))
    lost = acknowledged_at[numbers[-1] + 1 :]
    assert all(at > killed_at - _REDIS_DELAY_SECONDS for at in lost), (
        f"{len(lost)} of {len(acknowledged_at)} lost"
    )


async def test_a_full_namespace_is_still_full_after_a_crash(
    working_memory_to_crash: WorkingMemory, crash: Callable[[], None]
) -> None:
    for number in range(50):
        await working_queries.put(working_memory_to_crash, f"session/abc/{number}", "x")
    crash()
    with pytest.raises(errors.LimitReached):
        await working_queries.put(working_memory_to_crash, "session/abc/new", "x")
    await working_queries.put(working_memory_to_crash, "session/abc/7", "y")


async def test_a_server_out_of_memory_refuses_writes_as_a_whole_and_still_reads(
    working_memory_to_crash: WorkingMemory,
) -> None:
    await working_queries.put(working_memory_to_crash, "a/b/old", "x")
    await working_memory_to_crash.redis.config_set("maxmemory", "1")
    with pytest.raises(redis.RedisError):
        await working_queries.put(working_memory_to_crash, "a/b/new", "x")
    assert [listing.key for listing in await working_queries.list_entries(working_memory_to_crash)] == [
        "a/b/old"
    ]
    assert (await working_queries.get(working_memory_to_crash, "a/b/old")).value == "x"
    assert await working_queries.delete(working_memory_to_crash, "a/b/old")
    assert await working_queries.list_entries(working_memory_to_crash) == []


async def test_an_unreachable_server_raises_a_connection_error() -> None:
    url = "redis://127.0.0.1:1/0"
    async with redis.asyncio.from_url(url, decode_responses=True) as client:
        working_memory = WorkingMemory(client, config.load(redis_url=url), "t")
        with pytest.raises(redis.ConnectionError):
            await working_queries.list_entries(working_memory)
