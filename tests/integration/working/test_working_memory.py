"""The desk on a real server, alone and as a cluster."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.foundation import errors
from shared.memory.working import queries as working_queries
from shared.memory.working import render
from shared.memory.working.queries import WorkingMemory

pytestmark = pytest.mark.asyncio


async def _keys(desk: WorkingMemory, prefix: str = "") -> list[str]:
    return [listing.key for listing in await working_queries.list_entries(desk, prefix)]


async def _redis_keys(desk: WorkingMemory, ending: str = "") -> list[str]:
    return [name async for name in desk.redis.scan_iter(f"testing:working:{{{desk.tenant}*{ending}")]


async def _gone(desk: WorkingMemory, key: str) -> None:
    """Wait until an entry has expired, five seconds at most."""
    async with asyncio.timeout(5):
        while True:
            try:
                await working_queries.get(desk, key)
            except errors.NotFound:
                return


async def test_an_entry_is_read_back_as_it_was_written(desk: WorkingMemory) -> None:
    written = await working_queries.put(
        desk,
        "session/abc/Emails",
        "zwei: 日本 🎉\n",
        ttl_seconds=60,
        category="email/in",
        tags=["b", "a", "b"],
    )
    read = await working_queries.get(desk, "session/abc/Emails")
    assert read.model_dump() == written.model_dump()
    assert (read.value, read.category, read.tags) == ("zwei: 日本 🎉\n", "email/in", ("b", "a"))
    assert read.expires_at - read.stored_at == timedelta(seconds=60)
    assert abs(read.stored_at - datetime.now(UTC)) < timedelta(seconds=5)
    assert 0 < read.remaining <= 60


async def test_an_entry_lives_five_minutes_unless_it_says_otherwise(desk: WorkingMemory) -> None:
    entry = await working_queries.put(desk, "session/abc/x", "")
    assert (entry.expires_at - entry.stored_at, entry.value) == (timedelta(minutes=5), "")
    assert (entry.category, entry.tags) == (None, ())


async def test_keys_are_compared_without_case_and_shown_as_first_written(desk: WorkingMemory) -> None:
    await working_queries.put(desk, "Session/ABC/Emails", "old")
    overwritten = await working_queries.put(desk, "session/abc/emails", "new")
    assert overwritten.key == "Session/ABC/Emails"
    assert (await working_queries.get(desk, "SESSION/abc/EMAILS")).value == "new"
    assert await _keys(desk, "session/abc") == ["Session/ABC/Emails"]
    assert await working_queries.delete(desk, "session/ABC/emails")
    await working_queries.put(desk, "session/abc/emails", "again")
    assert await _keys(desk) == ["session/abc/emails"]


async def test_an_unknown_key_is_not_found(desk: WorkingMemory) -> None:
    for key in ("session/abc/none", "session/abc/none-index", "session/abc/none-chunk0", "none"):
        with pytest.raises(errors.NotFound, match=key):
            await working_queries.get(desk, key)
    assert not await working_queries.delete(desk, "session/abc/none")


async def test_an_expired_entry_is_invisible_everywhere_and_frees_its_slot(desk: WorkingMemory) -> None:
    desk = replace(desk, settings=desk.settings.model_copy(update={"working_max_entries": 2}))
    await working_queries.put(desk, "a/b/short", "x", ttl_seconds=0.05)
    await working_queries.put(desk, "a/b/long", "y")
    await _gone(desk, "a/b/short")
    assert await _keys(desk) == ["a/b/long"]
    assert await working_queries.read_many(desk, ["a/b/short"]) == {}
    await working_queries.put(desk, "a/b/next", "z")
    with pytest.raises(errors.LimitReached, match=r"'a/b' is at its limit of 2 live"):
        await working_queries.put(desk, "a/b/third", "z")
    (values,) = await _redis_keys(desk, "values")
    assert await desk.redis.hlen(values) == 2


async def test_deleting_an_expired_entry_says_that_there_was_none(desk: WorkingMemory) -> None:
    await working_queries.put(desk, "a/b/short", "x", ttl_seconds=0.01)
    await working_queries.put(desk, "a/b/long", "x")
    await _gone(desk, "a/b/short")
    assert not await working_queries.delete(desk, "a/b/short")
    assert await working_queries.delete(desk, "a/b/long")


async def test_a_short_lived_write_does_not_hide_a_namespace_that_lives_on(
    desk: WorkingMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_queries, "_REGISTRATION_GRACE_MS", 0)
    await working_queries.put(desk, "a/b/long", "x")
    await working_queries.put(desk, "a/b/short", "x", ttl_seconds=0.01)
    await _gone(desk, "a/b/short")
    assert await _keys(desk, "a") == ["a/b/long"]


async def test_twenty_writers_at_once_get_exactly_fifty_new_keys_in(desk: WorkingMemory) -> None:
    async def write(writer: int) -> int:
        refused = 0
        for number in range(5):
            try:
                await working_queries.put(desk, f"session/abc/{writer}-{number}", "x")
            except errors.LimitReached:
                refused += 1
        return refused

    refused = sum(await asyncio.gather(*map(write, range(20))))
    assert refused == 50
    assert len(await _keys(desk, "session/abc")) == 50


async def test_a_full_namespace_takes_overwrites_and_leaves_others_alone(desk: WorkingMemory) -> None:
    for number in range(50):
        await working_queries.put(desk, f"session/abc/{number}", "x")
    with pytest.raises(errors.LimitReached, match="limit of 50 live"):
        await working_queries.put(desk, "session/abc/new", "x")
    assert (await working_queries.put(desk, "SESSION/abc/7", "y")).value == "y"
    await working_queries.put(desk, "session/abcd/new", "x")
    assert await working_queries.delete(desk, "session/abc/0")
    await working_queries.put(desk, "session/abc/new", "x")


async def test_overwriting_starts_the_time_anew_and_replaces_everything(desk: WorkingMemory) -> None:
    await working_queries.put(desk, "a/b/c", "x", ttl_seconds=600, category="old", tags=["old"])
    await working_queries.put(desk, "a/b/c", "y", ttl_seconds=10)
    entry = await working_queries.get(desk, "a/b/c")
    assert (entry.value, entry.category, entry.tags) == ("y", None, ())
    assert entry.remaining <= 10
    for name in await _redis_keys(desk, "a/b*"):
        assert await desk.redis.pttl(name) <= 10_000


async def test_a_prefix_lists_whole_segments_over_all_namespaces(desk: WorkingMemory) -> None:
    stored = ["patrol/mail/x", "session", "session/abc", "session/abc/a", "session/abcd/a", "sessions/x/y"]
    for key in reversed(stored):
        await working_queries.put(desk, key, "x")
    assert await _keys(desk) == stored
    assert await _keys(desk, "session") == stored[1:5]
    assert await _keys(desk, "Session/ABC") == stored[2:4]
    assert await _keys(desk, "session/abc/a") == ["session/abc/a"]
    assert await _keys(desk, "none") == await _keys(desk, "session/ab") == []


async def test_clearing_deletes_whole_segments_and_counts_live_entries(desk: WorkingMemory) -> None:
    for key in ("session/abc/a/1", "session/abc/a/2", "session/abc/ab", "session/abcd/x", "patrol/p/x"):
        await working_queries.put(desk, key, "x")
    await working_queries.put(desk, "session/abc/a/gone", "x", ttl_seconds=0.01)
    await _gone(desk, "session/abc/a/gone")
    assert await working_queries.clear(desk, "session/ABC/a") == 2
    assert await _keys(desk, "session") == ["session/abc/ab", "session/abcd/x"]
    assert await working_queries.clear(desk, "session") == 2
    assert await _keys(desk) == ["patrol/p/x"]
    with pytest.raises(errors.Invalid, match="prefix"):
        await working_queries.clear(desk, "")
    assert await _keys(desk) == ["patrol/p/x"]


async def test_many_keys_are_read_at_once_with_whole_values(desk: WorkingMemory) -> None:
    large = "# A\n" + "word " * 4000
    await working_queries.put(desk, "a/b/large", large)
    await working_queries.put(desk, "a/c/Small", "s")
    found = await working_queries.read_many(
        desk, ["a/b/large", "A/C/small", "a/b/none", "x", "a/b/large-chunk9"]
    )
    assert {key: entry.value for key, entry in found.items()} == {"a/b/large": large, "A/C/small": "s"}
    assert await working_queries.read_many(desk, []) == {}


async def test_entries_come_with_values_from_every_namespace_of_a_prefix(desk: WorkingMemory) -> None:
    for number in range(20):
        await working_queries.put(desk, f"session/{number}/x", str(number))
    await working_queries.put(desk, "patrol/1/x", "p")
    found = [entry.value async for entry in working_queries.entries(desk, "session")]
    assert sorted(found, key=int) == [str(number) for number in range(20)]
    assert [entry.value async for entry in working_queries.entries(desk, "session/1")] == ["1"]
    assert len([entry async for entry in working_queries.entries(desk)]) == 21


async def test_inventories_answer_each_prefix_and_carry_no_value(desk: WorkingMemory) -> None:
    await working_queries.put(
        desk, "session/abc/emails", "secret", ttl_seconds=272, category="email", tags=["inbox"]
    )
    await working_queries.put(desk, "patrol/disk/found", "secret")
    await working_queries.put(desk, "subagent/7/report", "secret" * 4000)
    found = await working_queries.list_many_prefixes(
        desk, "session/abc", "patrol", "subagent", "none", include_views=True
    )
    assert {prefix: [one.key for one in listings] for prefix, listings in found.items()} == {
        "session/abc": ["session/abc/emails"],
        "patrol": ["patrol/disk/found"],
        "subagent": ["subagent/7/report", "subagent/7/report-index"],
        "none": [],
    }
    assert "secret" not in repr(found)
    line = render.inventory_line(found["session/abc"][0])
    assert line == "- session/abc/emails: expires in 4m32s, category: email, tags: inbox"


async def test_a_large_value_is_one_entry_that_is_read_by_parts(desk: WorkingMemory) -> None:
    first, second = "# One\n" + "a" * 10_000 + "\n", "## Two\n" + "b" * 10_000
    put = await working_queries.put(desk, "a/b/Doc", first + second, category="tool-result", tags=["t"])
    got = await working_queries.get(desk, "a/b/doc")
    assert got.model_dump() == put.model_dump()
    assert got.value.endswith("- **One** -> `a/b/Doc-chunk0`\n  - **Two** -> `a/b/Doc-chunk1`")
    assert got.expires_at - got.stored_at == timedelta(minutes=20)
    assert (await working_queries.get(desk, "a/b/doc", full=True)).value == first + second
    index = await working_queries.get(desk, "a/b/doc-index")
    assert (index.key, index.value, index.category, index.tags) == (
        "a/b/Doc-index",
        got.value,
        "tool-result",
        ("t",),
    )
    chunk = await working_queries.get(desk, "A/B/doc-CHUNK1", full=True)
    assert (chunk.key, chunk.value, chunk.expires_at) == ("a/b/Doc-chunk1", second, got.expires_at)
    with pytest.raises(errors.NotFound):
        await working_queries.get(desk, "a/b/doc-chunk2")
    assert await _keys(desk) == ["a/b/Doc"]
    views = await working_queries.list_entries(desk, "a/b", include_views=True)
    assert [view.key for view in views] == ["a/b/Doc", "a/b/Doc-index"]


async def test_the_parts_of_a_large_value_change_and_expire_with_their_entry(desk: WorkingMemory) -> None:
    await working_queries.put(desk, "a/b/doc", "x" * 16_001, ttl_seconds=30)
    assert (await working_queries.get(desk, "a/b/doc-index")).remaining <= 30
    for key in ("a/b/doc-index", "a/b/doc-chunk0"):
        with pytest.raises(errors.Invalid, match="read-only"):
            await working_queries.put(desk, key, "mine")
        with pytest.raises(errors.Invalid, match="read-only"):
            await working_queries.delete(desk, key)
    await working_queries.put(desk, "a/b/doc", "x" * 16_000)
    assert (await working_queries.get(desk, "a/b/doc")).value == "x" * 16_000
    for key in ("a/b/doc-index", "a/b/doc-chunk0"):
        with pytest.raises(errors.NotFound):
            await working_queries.get(desk, key)


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
    desk: WorkingMemory, fields: dict[str, object], field: str
) -> None:
    with pytest.raises(errors.Invalid) as caught:
        await working_queries.put(desk, **{"key": "a/b/c", "value": "v"} | fields)  # type: ignore[arg-type]
    assert caught.value.violations[0].field == field
    assert await _redis_keys(desk) == []


async def test_no_tenant_sees_another(desk: WorkingMemory) -> None:
    # With '/' between them, tenant and namespace of these two would be the same text.
    one, other = replace(desk, tenant=f"{desk.tenant}/a"), replace(desk, tenant=desk.tenant)
    await working_queries.put(one, "b", "one's")
    await working_queries.put(other, "a/b", "other's")
    assert (await working_queries.get(one, "b")).value == "one's"
    assert await _keys(one) == ["b"]
    assert await _keys(other) == ["a/b"]
    with pytest.raises(errors.NotFound):
        await working_queries.get(one, "a/b")
    assert await working_queries.clear(one, "b") == 1
    assert await _keys(other) == ["a/b"]


async def test_expired_entries_leave_no_redis_key(desk: WorkingMemory) -> None:
    await working_queries.put(desk, "a/b/one", "x", ttl_seconds=100)
    await working_queries.put(desk, "a/b/two", "x", ttl_seconds=300)
    names = await _redis_keys(desk, ":a/b*")
    assert len(names) == 3
    for name in names:
        assert 299_000 < await desk.redis.pttl(name) <= 300_000
    for name in set(await _redis_keys(desk)).difference(names):
        assert 300_000 < await desk.redis.pttl(name) <= 400_000
    await working_queries.delete(desk, "a/b/two")
    for name in names:
        assert await desk.redis.pttl(name) <= 100_000
    await working_queries.clear(desk, "a/b")
    assert await desk.redis.exists(*names) == 0


async def test_expired_namespaces_leave_the_tenants_list(
    desk: WorkingMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_queries, "_REGISTRATION_GRACE_MS", 0)
    await working_queries.put(desk, "session/old/x", "x", ttl_seconds=0.01)
    await _gone(desk, "session/old/x")
    await working_queries.put(desk, "session/new/x", "x")
    for ending in ("namespaces", "expiries"):
        (name,) = await _redis_keys(desk, ending)
        assert await desk.redis.zrange(name, 0, -1) == ["session/new"]
