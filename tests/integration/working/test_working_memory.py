"""Working memory on a Valkey server, as a single server and as a cluster."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.foundation import errors
from shared.memory.working import queries as working_queries
from shared.memory.working import render
from shared.memory.working.working_memory import WorkingMemory
from tests.integration.working.conftest import list_redis_keys, wait_until_expired

pytestmark = pytest.mark.asyncio


async def _keys(working_memory: WorkingMemory, prefix: str = "") -> list[str]:
    return [listing.key for listing in await working_queries.list_entries(working_memory, prefix)]


async def test_an_entry_is_read_back_as_it_was_written(working_memory: WorkingMemory) -> None:
    written_entry = await working_queries.put(
        working_memory,
        "session/abc/Emails",
        "zwei: 日本 🎉\n",
        ttl_seconds=60,
        category="email/in",
        tags=["b", "a", "b"],
    )
    entry = await working_queries.get(working_memory, "session/abc/Emails")
    assert entry.model_dump() == written_entry.model_dump()
    assert (entry.value, entry.category, entry.tags) == ("zwei: 日本 🎉\n", "email/in", ("b", "a"))
    assert entry.expires_at - entry.stored_at == timedelta(seconds=60)
    assert abs(entry.stored_at - datetime.now(UTC)) < timedelta(seconds=5)
    assert 0 < entry.remaining <= 60


async def test_an_entry_expires_after_five_minutes_by_default(working_memory: WorkingMemory) -> None:
    entry = await working_queries.put(working_memory, "session/abc/x", "")
    assert (entry.expires_at - entry.stored_at, entry.value) == (timedelta(minutes=5), "")
    assert (entry.category, entry.tags) == (None, ())


async def test_keys_are_compared_without_case_and_shown_as_first_written(
    working_memory: WorkingMemory,
) -> None:
    await working_queries.put(working_memory, "Session/ABC/Emails", "old")
    overwriting_entry = await working_queries.put(working_memory, "session/abc/emails", "new")
    assert overwriting_entry.key == "Session/ABC/Emails"
    assert (await working_queries.get(working_memory, "SESSION/abc/EMAILS")).value == "new"
    assert await _keys(working_memory, "session/abc") == ["Session/ABC/Emails"]
    assert await working_queries.delete(working_memory, "session/ABC/emails")
    await working_queries.put(working_memory, "session/abc/emails", "again")
    assert await _keys(working_memory) == ["session/abc/emails"]


async def test_an_unknown_key_is_not_found(working_memory: WorkingMemory) -> None:
    for key in ("session/abc/none", "session/abc/none-index", "session/abc/none-chunk0", "none"):
        with pytest.raises(errors.NotFound, match=key):
            await working_queries.get(working_memory, key)
    assert not await working_queries.delete(working_memory, "session/abc/none")


async def test_an_expired_entry_is_not_read_or_listed_and_no_longer_counts(
    working_memory: WorkingMemory,
) -> None:
    working_memory = replace(
        working_memory, settings=working_memory.settings.model_copy(update={"working_max_entries": 2})
    )
    await working_queries.put(working_memory, "a/b/short", "x", ttl_seconds=0.05)
    await working_queries.put(working_memory, "a/b/long", "y")
    await wait_until_expired(working_memory, "a/b/short")
    assert await _keys(working_memory) == ["a/b/long"]
    assert await working_queries.read_many(working_memory, ["a/b/short"]) == {}
    await working_queries.put(working_memory, "a/b/next", "z")
    with pytest.raises(errors.LimitReached, match=r"'a/b' is at its limit of 2 live"):
        await working_queries.put(working_memory, "a/b/third", "z")
    (values,) = await list_redis_keys(working_memory, "values")
    assert await working_memory.redis.hlen(values) == 2


async def test_deleting_an_expired_entry_reports_that_nothing_was_deleted(
    working_memory: WorkingMemory,
) -> None:
    await working_queries.put(working_memory, "a/b/short", "x", ttl_seconds=0.01)
    await working_queries.put(working_memory, "a/b/long", "x")
    await wait_until_expired(working_memory, "a/b/short")
    assert not await working_queries.delete(working_memory, "a/b/short")
    assert await working_queries.delete(working_memory, "a/b/long")


async def test_a_write_with_a_short_ttl_does_not_unlist_a_namespace_with_longer_entries(
    working_memory: WorkingMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_queries, "_REGISTRATION_GRACE_MS", 0)
    await working_queries.put(working_memory, "a/b/long", "x")
    await working_queries.put(working_memory, "a/b/short", "x", ttl_seconds=0.01)
    await wait_until_expired(working_memory, "a/b/short")
    assert await _keys(working_memory, "a") == ["a/b/long"]


async def test_twenty_concurrent_writers_store_exactly_fifty_new_keys(working_memory: WorkingMemory) -> None:
    async def write(writer: int) -> int:
        refused_count = 0
        for number in range(5):
            try:
                await working_queries.put(working_memory, f"session/abc/{writer}-{number}", "x")
            except errors.LimitReached:
                refused_count += 1
        return refused_count

    refused_count = sum(await asyncio.gather(*map(write, range(20))))
    assert refused_count == 50
    assert len(await _keys(working_memory, "session/abc")) == 50


async def test_a_full_namespace_accepts_overwrites_and_does_not_affect_others(
    working_memory: WorkingMemory,
) -> None:
    for number in range(50):
        await working_queries.put(working_memory, f"session/abc/{number}", "x")
    with pytest.raises(errors.LimitReached, match="limit of 50 live"):
        await working_queries.put(working_memory, "session/abc/new", "x")
    assert (await working_queries.put(working_memory, "SESSION/abc/7", "y")).value == "y"
    await working_queries.put(working_memory, "session/abcd/new", "x")
    assert await working_queries.delete(working_memory, "session/abc/0")
    await working_queries.put(working_memory, "session/abc/new", "x")


async def test_overwriting_restarts_the_ttl_and_replaces_every_field(
    working_memory: WorkingMemory,
) -> None:
    await working_queries.put(working_memory, "a/b/c", "x", ttl_seconds=600, category="old", tags=["old"])
    await working_queries.put(working_memory, "a/b/c", "y", ttl_seconds=10)
    entry = await working_queries.get(working_memory, "a/b/c")
    assert (entry.value, entry.category, entry.tags) == ("y", None, ())
    assert entry.remaining <= 10
    for redis_key in await list_redis_keys(working_memory, "a/b*"):
        assert await working_memory.redis.pttl(redis_key) <= 10_000


async def test_a_prefix_matches_whole_segments_across_namespaces(working_memory: WorkingMemory) -> None:
    keys = ["patrol/mail/x", "session", "session/abc", "session/abc/a", "session/abcd/a", "sessions/x/y"]
    for key in reversed(keys):
        await working_queries.put(working_memory, key, "x")
    assert await _keys(working_memory) == keys
    assert await _keys(working_memory, "session") == keys[1:5]
    assert await _keys(working_memory, "Session/ABC") == keys[2:4]
    assert await _keys(working_memory, "session/abc/a") == ["session/abc/a"]
    assert await _keys(working_memory, "none") == await _keys(working_memory, "session/ab") == []


async def test_clearing_matches_whole_segments_and_counts_live_entries(working_memory: WorkingMemory) -> None:
    for key in ("session/abc/a/1", "session/abc/a/2", "session/abc/ab", "session/abcd/x", "patrol/p/x"):
        await working_queries.put(working_memory, key, "x")
    await working_queries.put(working_memory, "session/abc/a/expired", "x", ttl_seconds=0.01)
    await wait_until_expired(working_memory, "session/abc/a/expired")
    assert await working_queries.clear(working_memory, "session/ABC/a") == 2
    assert await _keys(working_memory, "session") == ["session/abc/ab", "session/abcd/x"]
    assert await working_queries.clear(working_memory, "session") == 2
    assert await _keys(working_memory) == ["patrol/p/x"]
    with pytest.raises(errors.Invalid, match="prefix"):
        await working_queries.clear(working_memory, "")
    assert await _keys(working_memory) == ["patrol/p/x"]


async def test_many_keys_are_read_in_one_call_with_whole_values(working_memory: WorkingMemory) -> None:
    large = "# A\n" + "word " * 4000
    await working_queries.put(working_memory, "a/b/large", large)
    await working_queries.put(working_memory, "a/c/Small", "s")
    entries_by_path = await working_queries.read_many(
        working_memory, ["a/b/large", "A/C/small", "a/b/none", "x", "a/b/large-chunk9"]
    )
    assert {key: entry.value for key, entry in entries_by_path.items()} == {
        "a/b/large": large,
        "A/C/small": "s",
    }
    assert await working_queries.read_many(working_memory, []) == {}


async def test_entries_of_a_prefix_are_read_with_values_from_every_namespace(
    working_memory: WorkingMemory,
) -> None:
    for number in range(20):
        await working_queries.put(working_memory, f"session/{number}/x", str(number))
    await working_queries.put(working_memory, "patrol/1/x", "p")
    values = [entry.value async for entry in working_queries.iterate_entries(working_memory, "session")]
    assert sorted(values, key=int) == [str(number) for number in range(20)]
    assert [entry.value async for entry in working_queries.iterate_entries(working_memory, "session/1")] == [
        "1"
    ]
    assert len([entry async for entry in working_queries.iterate_entries(working_memory)]) == 21


async def test_inventories_list_each_prefix_without_values(working_memory: WorkingMemory) -> None:
    await working_queries.put(
        working_memory, "session/abc/emails", "secret", ttl_seconds=272, category="email", tags=["inbox"]
    )
    await working_queries.put(working_memory, "patrol/disk/report", "secret")
    await working_queries.put(working_memory, "subagent/7/report", "secret" * 4000)
    listings_by_prefix = await working_queries.list_many_prefixes(
        working_memory, "session/abc", "patrol", "subagent", "none", include_views=True
    )
    assert {
        prefix: [listing.key for listing in listings] for prefix, listings in listings_by_prefix.items()
    } == {
        "session/abc": ["session/abc/emails"],
        "patrol": ["patrol/disk/report"],
        "subagent": ["subagent/7/report", "subagent/7/report-index"],
        "none": [],
    }
    assert "secret" not in repr(listings_by_prefix)
    line = render.inventory_line(listings_by_prefix["session/abc"][0])
    assert line == "- session/abc/emails: expires in 4m32s, category: email, tags: inbox"


async def test_a_large_value_is_one_entry_that_is_read_in_chunks(working_memory: WorkingMemory) -> None:
    first, second = "# One\n" + "a" * 10_000 + "\n", "## Two\n" + "b" * 10_000
    written_entry = await working_queries.put(
        working_memory, "a/b/Doc", first + second, category="tool-result", tags=["t"]
    )
    entry = await working_queries.get(working_memory, "a/b/doc")
    assert entry.model_dump() == written_entry.model_dump()
    assert entry.value.endswith("- **One** -> `a/b/Doc-chunk0`\n  - **Two** -> `a/b/Doc-chunk1`")
    assert entry.expires_at - entry.stored_at == timedelta(minutes=20)
    assert (await working_queries.get(working_memory, "a/b/doc", full=True)).value == first + second
    index = await working_queries.get(working_memory, "a/b/doc-index")
    assert (index.key, index.value, index.category, index.tags) == (
        "a/b/Doc-index",
        entry.value,
        "tool-result",
        ("t",),
    )
    chunk = await working_queries.get(working_memory, "A/B/doc-CHUNK1", full=True)
    assert (chunk.key, chunk.value, chunk.expires_at) == ("a/b/Doc-chunk1", second, entry.expires_at)
    with pytest.raises(errors.NotFound):
        await working_queries.get(working_memory, "a/b/doc-chunk2")
    assert await _keys(working_memory) == ["a/b/Doc"]
    views = await working_queries.list_entries(working_memory, "a/b", include_views=True)
    assert [view.key for view in views] == ["a/b/Doc", "a/b/Doc-index"]


async def test_the_chunks_of_a_large_value_change_and_expire_with_their_entry(
    working_memory: WorkingMemory,
) -> None:
    await working_queries.put(working_memory, "a/b/doc", "x" * 16_001, ttl_seconds=30)
    assert (await working_queries.get(working_memory, "a/b/doc-index")).remaining <= 30
    for key in ("a/b/doc-index", "a/b/doc-chunk0"):
        with pytest.raises(errors.Invalid, match="read-only"):
            await working_queries.put(working_memory, key, "x")
        with pytest.raises(errors.Invalid, match="read-only"):
            await working_queries.delete(working_memory, key)
    await working_queries.put(working_memory, "a/b/doc", "x" * 16_000)
    assert (await working_queries.get(working_memory, "a/b/doc")).value == "x" * 16_000
    for key in ("a/b/doc-index", "a/b/doc-chunk0"):
        with pytest.raises(errors.NotFound):
            await working_queries.get(working_memory, key)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"key": "a/../b"}, "key"),
        ({"key": "a b"}, "key"),
        ({"value": "a\x00"}, "value"),
        ({"value": "\ud800"}, "value"),
        ({"ttl_seconds": 0}, "ttl_seconds"),
        ({"ttl_seconds": float("nan")}, "ttl_seconds"),
        ({"ttl_seconds": 1e12}, "ttl_seconds"),
        ({"category": ""}, "category"),
        ({"category": "../x"}, "category"),
        ({"tags": ["a\nb"]}, "tags.0"),
    ],
)
async def test_invalid_input_is_refused_and_stores_nothing(
    working_memory: WorkingMemory, fields: dict[str, object], field: str
) -> None:
    with pytest.raises(errors.Invalid) as error_info:
        await working_queries.put(working_memory, **{"key": "a/b/c", "value": "v"} | fields)  # type: ignore[arg-type]
    assert error_info.value.violations[0].field == field
    assert await list_redis_keys(working_memory) == []


async def test_a_tenant_never_reads_or_clears_entries_of_another(working_memory: WorkingMemory) -> None:
    # Joined with '/', tenant and namespace of these two would be the same text.
    first, second = (
        replace(working_memory, tenant=f"{working_memory.tenant}/a"),
        replace(working_memory, tenant=working_memory.tenant),
    )
    await working_queries.put(first, "b", "of the first")
    await working_queries.put(second, "a/b", "of the second")
    assert (await working_queries.get(first, "b")).value == "of the first"
    assert await _keys(first) == ["b"]
    assert await _keys(second) == ["a/b"]
    with pytest.raises(errors.NotFound):
        await working_queries.get(first, "a/b")
    assert await working_queries.clear(first, "b") == 1
    assert await _keys(second) == ["a/b"]


async def test_redis_keys_expire_with_their_last_entry(working_memory: WorkingMemory) -> None:
    await working_queries.put(working_memory, "a/b/one", "x", ttl_seconds=100)
    await working_queries.put(working_memory, "a/b/two", "x", ttl_seconds=300)
    redis_keys = await list_redis_keys(working_memory, ":a/b*")
    assert len(redis_keys) == 3
    for redis_key in redis_keys:
        assert 299_000 < await working_memory.redis.pttl(redis_key) <= 300_000
    for redis_key in set(await list_redis_keys(working_memory)).difference(redis_keys):
        assert 300_000 < await working_memory.redis.pttl(redis_key) <= 400_000
    await working_queries.delete(working_memory, "a/b/two")
    for redis_key in redis_keys:
        assert await working_memory.redis.pttl(redis_key) <= 100_000
    await working_queries.clear(working_memory, "a/b")
    assert await working_memory.redis.exists(*redis_keys) == 0


async def test_expired_namespaces_are_removed_from_the_list_of_the_tenant(
    working_memory: WorkingMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_queries, "_REGISTRATION_GRACE_MS", 0)
    await working_queries.put(working_memory, "session/old/x", "x", ttl_seconds=0.01)
    await wait_until_expired(working_memory, "session/old/x")
    await working_queries.put(working_memory, "session/new/x", "x")
    for suffix in ("namespaces", "expiries"):
        (redis_key,) = await list_redis_keys(working_memory, suffix)
        assert await working_memory.redis.zrange(redis_key, 0, -1) == ["session/new"]
