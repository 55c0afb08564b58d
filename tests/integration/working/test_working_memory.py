"""Working memory on a real server, alone and as a cluster."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.foundation import errors
from shared.memory.working import queries as working_queries
from shared.memory.working import render
from shared.memory.working.queries import WorkingMemory

pytestmark = pytest.mark.asyncio


async def _keys(working_memory: WorkingMemory, prefix: str = "") -> list[str]:
    return [listing.key for listing in await working_queries.list_entries(working_memory, prefix)]


async def _redis_keys(working_memory: WorkingMemory, ending: str = "") -> list[str]:
    return [
        name
        async for name in working_memory.redis.scan_iter(
            f"testing:working:{{{working_memory.tenant}*{ending}"
        )
    ]


async def _wait_until_expired(working_memory: WorkingMemory, key: str) -> None:
    """Wait until an entry has expired, five seconds at most."""
    async with asyncio.timeout(5):
        while True:
            try:
                await working_queries.get(working_memory, key)
            except errors.NotFound:
                return


async def test_an_entry_is_read_back_as_it_was_written(working_memory: WorkingMemory) -> None:
    written = await working_queries.put(
        working_memory,
        "session/abc/Emails",
        "zwei: 日本 🎉\n",
        ttl_seconds=60,
        category="email/in",
        tags=["b", "a", "b"],
    )
    entry = await working_queries.get(working_memory, "session/abc/Emails")
    assert entry.model_dump() == written.model_dump()
    assert (entry.value, entry.category, entry.tags) == ("zwei: 日本 🎉\n", "email/in", ("b", "a"))
    assert entry.expires_at - entry.stored_at == timedelta(seconds=60)
    assert abs(entry.stored_at - datetime.now(UTC)) < timedelta(seconds=5)
    assert 0 < entry.remaining <= 60


async def test_an_entry_lives_five_minutes_unless_it_says_otherwise(working_memory: WorkingMemory) -> None:
    entry = await working_queries.put(working_memory, "session/abc/x", "")
    assert (entry.expires_at - entry.stored_at, entry.value) == (timedelta(minutes=5), "")
    assert (entry.category, entry.tags) == (None, ())


async def test_keys_are_compared_without_case_and_shown_as_first_written(
    working_memory: WorkingMemory,
) -> None:
    await working_queries.put(working_memory, "Session/ABC/Emails", "old")
    overwritten = await working_queries.put(working_memory, "session/abc/emails", "new")
    assert overwritten.key == "Session/ABC/Emails"
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


async def test_an_expired_entry_is_invisible_everywhere_and_frees_its_slot(
    working_memory: WorkingMemory,
) -> None:
    working_memory = replace(
        working_memory, settings=working_memory.settings.model_copy(update={"working_max_entries": 2})
    )
    await working_queries.put(working_memory, "a/b/short", "x", ttl_seconds=0.05)
    await working_queries.put(working_memory, "a/b/long", "y")
    await _wait_until_expired(working_memory, "a/b/short")
    assert await _keys(working_memory) == ["a/b/long"]
    assert await working_queries.read_many(working_memory, ["a/b/short"]) == {}
    await working_queries.put(working_memory, "a/b/next", "z")
    with pytest.raises(errors.LimitReached, match=r"'a/b' is at its limit of 2 live"):
        await working_queries.put(working_memory, "a/b/third", "z")
    (values,) = await _redis_keys(working_memory, "values")
    assert await working_memory.redis.hlen(values) == 2


async def test_deleting_an_expired_entry_says_that_there_was_none(working_memory: WorkingMemory) -> None:
    await working_queries.put(working_memory, "a/b/short", "x", ttl_seconds=0.01)
    await working_queries.put(working_memory, "a/b/long", "x")
    await _wait_until_expired(working_memory, "a/b/short")
    assert not await working_queries.delete(working_memory, "a/b/short")
    assert await working_queries.delete(working_memory, "a/b/long")


async def test_a_short_lived_write_does_not_hide_a_namespace_that_lives_on(
    working_memory: WorkingMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_queries, "_REGISTRATION_GRACE_MS", 0)
    await working_queries.put(working_memory, "a/b/long", "x")
    await working_queries.put(working_memory, "a/b/short", "x", ttl_seconds=0.01)
    await _wait_until_expired(working_memory, "a/b/short")
    assert await _keys(working_memory, "a") == ["a/b/long"]


async def test_twenty_writers_at_once_get_exactly_fifty_new_keys_in(working_memory: WorkingMemory) -> None:
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


async def test_a_full_namespace_takes_overwrites_and_leaves_others_alone(
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


async def test_overwriting_starts_the_time_anew_and_replaces_everything(
    working_memory: WorkingMemory,
) -> None:
    await working_queries.put(working_memory, "a/b/c", "x", ttl_seconds=600, category="old", tags=["old"])
    await working_queries.put(working_memory, "a/b/c", "y", ttl_seconds=10)
    entry = await working_queries.get(working_memory, "a/b/c")
    assert (entry.value, entry.category, entry.tags) == ("y", None, ())
    assert entry.remaining <= 10
    for name in await _redis_keys(working_memory, "a/b*"):
        assert await working_memory.redis.pttl(name) <= 10_000


async def test_a_prefix_lists_whole_segments_over_all_namespaces(working_memory: WorkingMemory) -> None:
    stored = ["patrol/mail/x", "session", "session/abc", "session/abc/a", "session/abcd/a", "sessions/x/y"]
    for key in reversed(stored):
        await working_queries.put(working_memory, key, "x")
    assert await _keys(working_memory) == stored
    assert await _keys(working_memory, "session") == stored[1:5]
    assert await _keys(working_memory, "Session/ABC") == stored[2:4]
    assert await _keys(working_memory, "session/abc/a") == ["session/abc/a"]
    assert await _keys(working_memory, "none") == await _keys(working_memory, "session/ab") == []


async def test_clearing_deletes_whole_segments_and_counts_live_entries(working_memory: WorkingMemory) -> None:
    for key in ("session/abc/a/1", "session/abc/a/2", "session/abc/ab", "session/abcd/x", "patrol/p/x"):
        await working_queries.put(working_memory, key, "x")
    await working_queries.put(working_memory, "session/abc/a/gone", "x", ttl_seconds=0.01)
    await _wait_until_expired(working_memory, "session/abc/a/gone")
    assert await working_queries.clear(working_memory, "session/ABC/a") == 2
    assert await _keys(working_memory, "session") == ["session/abc/ab", "session/abcd/x"]
    assert await working_queries.clear(working_memory, "session") == 2
    assert await _keys(working_memory) == ["patrol/p/x"]
    with pytest.raises(errors.Invalid, match="prefix"):
        await working_queries.clear(working_memory, "")
    assert await _keys(working_memory) == ["patrol/p/x"]


async def test_many_keys_are_read_at_once_with_whole_values(working_memory: WorkingMemory) -> None:
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


async def test_entries_come_with_values_from_every_namespace_of_a_prefix(
    working_memory: WorkingMemory,
) -> None:
    for number in range(20):
        await working_queries.put(working_memory, f"session/{number}/x", str(number))
    await working_queries.put(working_memory, "patrol/1/x", "p")
    entries_by_path = [entry.value async for entry in working_queries.entries(working_memory, "session")]
    assert sorted(entries_by_path, key=int) == [str(number) for number in range(20)]
    assert [entry.value async for entry in working_queries.entries(working_memory, "session/1")] == ["1"]
    assert len([entry async for entry in working_queries.entries(working_memory)]) == 21


async def test_inventories_answer_each_prefix_and_carry_no_value(working_memory: WorkingMemory) -> None:
    await working_queries.put(
        working_memory, "session/abc/emails", "secret", ttl_seconds=272, category="email", tags=["inbox"]
    )
    await working_queries.put(working_memory, "patrol/disk/found", "secret")
    await working_queries.put(working_memory, "subagent/7/report", "secret" * 4000)
    entries_by_path = await working_queries.list_many_prefixes(
        working_memory, "session/abc", "patrol", "subagent", "none", include_views=True
    )
    assert {
        prefix: [tenant_memory.key for tenant_memory in listings]
        for prefix, listings in entries_by_path.items()
    } == {
        "session/abc": ["session/abc/emails"],
        "patrol": ["patrol/disk/found"],
        "subagent": ["subagent/7/report", "subagent/7/report-index"],
        "none": [],
    }
    assert "secret" not in repr(entries_by_path)
    line = render.inventory_line(entries_by_path["session/abc"][0])
    assert line == "- session/abc/emails: expires in 4m32s, category: email, tags: inbox"


async def test_a_large_value_is_one_entry_that_is_read_by_parts(working_memory: WorkingMemory) -> None:
    first, second = "# One\n" + "a" * 10_000 + "\n", "## Two\n" + "b" * 10_000
    put = await working_queries.put(
        working_memory, "a/b/Doc", first + second, category="tool-result", tags=["t"]
    )
    got = await working_queries.get(working_memory, "a/b/doc")
    assert got.model_dump() == put.model_dump()
    assert got.value.endswith("- **One** -> `a/b/Doc-chunk0`\n  - **Two** -> `a/b/Doc-chunk1`")
    assert got.expires_at - got.stored_at == timedelta(minutes=20)
    assert (await working_queries.get(working_memory, "a/b/doc", full=True)).value == first + second
    index = await working_queries.get(working_memory, "a/b/doc-index")
    assert (index.key, index.value, index.category, index.tags) == (
        "a/b/Doc-index",
        got.value,
        "tool-result",
        ("t",),
    )
    chunk = await working_queries.get(working_memory, "A/B/doc-CHUNK1", full=True)
    assert (chunk.key, chunk.value, chunk.expires_at) == ("a/b/Doc-chunk1", second, got.expires_at)
    with pytest.raises(errors.NotFound):
        await working_queries.get(working_memory, "a/b/doc-chunk2")
    assert await _keys(working_memory) == ["a/b/Doc"]
    views = await working_queries.list_entries(working_memory, "a/b", include_views=True)
    assert [view.key for view in views] == ["a/b/Doc", "a/b/Doc-index"]


async def test_the_parts_of_a_large_value_change_and_expire_with_their_entry(
    working_memory: WorkingMemory,
) -> None:
    await working_queries.put(working_memory, "a/b/doc", "x" * 16_001, ttl_seconds=30)
    assert (await working_queries.get(working_memory, "a/b/doc-index")).remaining <= 30
    for key in ("a/b/doc-index", "a/b/doc-chunk0"):
        with pytest.raises(errors.Invalid, match="read-only"):
            await working_queries.put(working_memory, key, "mine")
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
async def test_bad_input_is_refused_and_stores_nothing(
    working_memory: WorkingMemory, fields: dict[str, object], field: str
) -> None:
    with pytest.raises(errors.Invalid) as caught:
        await working_queries.put(working_memory, **{"key": "a/b/c", "value": "v"} | fields)  # type: ignore[arg-type]
    assert caught.value.violations[0].field == field
    assert await _redis_keys(working_memory) == []


async def test_no_tenant_sees_another(working_memory: WorkingMemory) -> None:
    # With '/' between them, tenant and namespace of these two would be the same text.
    tenant_memory, other = (
        replace(working_memory, tenant=f"{working_memory.tenant}/a"),
        replace(working_memory, tenant=working_memory.tenant),
    )
    await working_queries.put(tenant_memory, "b", "one's")
    await working_queries.put(other, "a/b", "other's")
    assert (await working_queries.get(tenant_memory, "b")).value == "one's"
    assert await _keys(tenant_memory) == ["b"]
    assert await _keys(other) == ["a/b"]
    with pytest.raises(errors.NotFound):
        await working_queries.get(tenant_memory, "a/b")
    assert await working_queries.clear(tenant_memory, "b") == 1
    assert await _keys(other) == ["a/b"]


async def test_expired_entries_leave_no_redis_key(working_memory: WorkingMemory) -> None:
    await working_queries.put(working_memory, "a/b/one", "x", ttl_seconds=100)
    await working_queries.put(working_memory, "a/b/two", "x", ttl_seconds=300)
    names = await _redis_keys(working_memory, ":a/b*")
    assert len(names) == 3
    for name in names:
        assert 299_000 < await working_memory.redis.pttl(name) <= 300_000
    for name in set(await _redis_keys(working_memory)).difference(names):
        assert 300_000 < await working_memory.redis.pttl(name) <= 400_000
    await working_queries.delete(working_memory, "a/b/two")
    for name in names:
        assert await working_memory.redis.pttl(name) <= 100_000
    await working_queries.clear(working_memory, "a/b")
    assert await working_memory.redis.exists(*names) == 0


async def test_expired_namespaces_leave_the_tenants_list(
    working_memory: WorkingMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_queries, "_REGISTRATION_GRACE_MS", 0)
    await working_queries.put(working_memory, "session/old/x", "x", ttl_seconds=0.01)
    await _wait_until_expired(working_memory, "session/old/x")
    await working_queries.put(working_memory, "session/new/x", "x")
    for ending in ("namespaces", "expiries"):
        (name,) = await _redis_keys(working_memory, ending)
        assert await working_memory.redis.zrange(name, 0, -1) == ["session/new"]
