"""What working memory keeps, and which errors it raises, when its server dies."""

from collections.abc import Callable

import pytest
import redis
import redis.asyncio

from shared.foundation import config, errors
from shared.memory.working import queries as working_queries
from shared.memory.working.queries import WorkingMemory

pytestmark = pytest.mark.asyncio


async def test_a_crashed_server_comes_back_with_the_remaining_time(
    lone_working_memory: WorkingMemory, crash: Callable[[], None]
) -> None:
    written = await working_queries.put(
        lone_working_memory, "session/abc/Doc", "x" * 20_000, category="c", tags=["t"]
    )
    await working_queries.put(lone_working_memory, "session/abc/short", "x", ttl_seconds=0.001)
    crash()
    (listing,) = await working_queries.list_entries(lone_working_memory)
    entry = await working_queries.get(lone_working_memory, "session/abc/doc", full=True)
    assert (entry.stored_at, entry.expires_at) == (written.stored_at, written.expires_at)
    assert listing.remaining < written.remaining == 1200
    assert (entry.key, entry.value, entry.category, entry.tags) == (
        "session/abc/Doc",
        "x" * 20_000,
        "c",
        ("t",),
    )
    names = [name async for name in lone_working_memory.redis.scan_iter("testing:working:*")]
    assert len(names) == 5
    for name in names:
        assert 0 < await lone_working_memory.redis.pttl(name) <= 1_260_000


async def test_a_full_namespace_is_still_full_after_a_crash(
    lone_working_memory: WorkingMemory, crash: Callable[[], None]
) -> None:
    for number in range(50):
        await working_queries.put(lone_working_memory, f"session/abc/{number}", "x")
    crash()
    with pytest.raises(errors.LimitReached):
        await working_queries.put(lone_working_memory, "session/abc/new", "x")
    await working_queries.put(lone_working_memory, "session/abc/7", "y")


async def test_a_server_out_of_memory_refuses_whole_writes_and_goes_on_reading(
    lone_working_memory: WorkingMemory,
) -> None:
    await working_queries.put(lone_working_memory, "a/b/old", "x")
    await lone_working_memory.redis.config_set("maxmemory", "1")
    with pytest.raises(redis.RedisError):
        await working_queries.put(lone_working_memory, "a/b/new", "x")
    assert [listing.key for listing in await working_queries.list_entries(lone_working_memory)] == ["a/b/old"]
    assert (await working_queries.get(lone_working_memory, "a/b/old")).value == "x"
    assert await working_queries.delete(lone_working_memory, "a/b/old")
    assert await working_queries.list_entries(lone_working_memory) == []


async def test_an_unavailable_redis_raises_its_own_error() -> None:
    url = "redis://127.0.0.1:1/0"
    async with redis.asyncio.from_url(url, decode_responses=True) as client:
        away = WorkingMemory(client, config.load(redis_url=url), "t")
        with pytest.raises(redis.ConnectionError):
            await working_queries.list_entries(away)
