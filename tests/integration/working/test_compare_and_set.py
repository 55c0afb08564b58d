"""LT23: conditions on versions, and appends, on a Valkey server as a single server and as a cluster."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.foundation import errors
from shared.foundation.versions import ABSENT, EXISTS
from shared.memory.working import queries, rules
from shared.memory.working.working_memory import WorkingMemory
from tests.integration.working.conftest import list_redis_keys, wait_until_expired

pytestmark = pytest.mark.asyncio
KEY = "session/abc/log"


async def test_an_entry_is_written_and_deleted_only_in_the_expected_version(
    working_memory: WorkingMemory,
) -> None:
    expected: frozenset[int] | set[int]
    for expected in ({7}, {EXISTS}):
        with pytest.raises(errors.PreconditionFailed, match="is not there"):
            await queries.put(working_memory, KEY, "x", expected=expected)
        with pytest.raises(errors.PreconditionFailed, match="is not there"):
            await queries.delete(working_memory, KEY, expected=expected)
    first = await queries.put(working_memory, KEY, "1", expected={ABSENT})
    second = await queries.put(working_memory, KEY.upper(), "2", expected={7, first.version})
    assert second.version > first.version
    for expected in ({first.version}, {ABSENT}, frozenset()):
        with pytest.raises(errors.PreconditionFailed, match=str(second.version)):
            await queries.put(working_memory, KEY, "3", expected=expected)
        with pytest.raises(errors.PreconditionFailed, match=str(second.version)):
            await queries.delete(working_memory, KEY, expected=expected)
        with pytest.raises(errors.PreconditionFailed, match=str(second.version)):
            await queries.check_version(working_memory, KEY, expected)
    assert (await queries.get(working_memory, KEY)).model_dump() == second.model_dump()
    await queries.check_version(working_memory, KEY, {second.version})
    assert await queries.delete(working_memory, KEY, expected={second.version})
    assert (await queries.put(working_memory, KEY, "4")).version > second.version
    await queries.put(working_memory, KEY, "5", expected={EXISTS})


async def test_an_expired_entry_counts_as_absent(working_memory: WorkingMemory) -> None:
    await queries.put(working_memory, "session/abc/other", "x")
    expired = await queries.put(working_memory, KEY, "x", ttl_seconds=0.01)
    await wait_until_expired(working_memory, KEY)
    with pytest.raises(errors.NotFound):
        await queries.append(working_memory, KEY, "y")
    with pytest.raises(errors.PreconditionFailed, match="is not there"):
        await queries.delete(working_memory, KEY, expected={expired.version})
    with pytest.raises(errors.PreconditionFailed, match="is not there"):
        await queries.put(working_memory, KEY, "y", expected={expired.version})
    await queries.put(working_memory, KEY, "y", expected={ABSENT})


async def test_of_many_writers_of_one_version_one_succeeds(working_memory: WorkingMemory) -> None:
    version = (await queries.put(working_memory, KEY, "")).version
    writes = [queries.put(working_memory, KEY, str(writer), expected={version}) for writer in range(20)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    (written,) = [result for result in results if not isinstance(result, errors.PreconditionFailed)]
    assert (await queries.get(working_memory, KEY)).model_dump() == written.model_dump()  # type: ignore[union-attr]


async def test_twenty_clients_that_append_at_once_lose_nothing(working_memory: WorkingMemory) -> None:
    await queries.put(working_memory, KEY, "", category="log", tags=["a"])
    entries = await asyncio.gather(
        *(
            queries.append(working_memory, KEY, f"<{writer}:{number}>")
            for writer in range(20)
            for number in range(5)
        )
    )
    last = await queries.get(working_memory, KEY)
    expected = {f"<{writer}:{number}>" for writer in range(20) for number in range(5)}
    assert set(last.value.replace("><", ">|<").split("|")) == expected
    assert len({entry.version for entry in entries}) == 100
    assert (last.key, last.category, last.tags) == (KEY, "log", ("a",))


async def test_appending_leaves_the_time_to_live_or_starts_it_anew(working_memory: WorkingMemory) -> None:
    written = await queries.put(working_memory, KEY, "1", ttl_seconds=600)
    appended = await queries.append(working_memory, KEY, "2")
    assert (appended.value, appended.expires_at) == ("12", written.expires_at)
    assert appended.version > written.version
    assert 0 < appended.remaining <= 600
    renewed = await queries.append(working_memory, KEY, "3", ttl_seconds=1200, expected={appended.version})
    assert renewed.expires_at - renewed.stored_at == timedelta(seconds=1200)
    assert renewed.remaining == 1200
    for redis_key in await list_redis_keys(working_memory, "session/abc*"):
        assert await working_memory.redis.pttl(redis_key) > 600_000
    with pytest.raises(errors.PreconditionFailed, match=str(renewed.version)):
        await queries.append(working_memory, KEY, "4", expected={appended.version})
    assert (await queries.get(working_memory, KEY)).model_dump(exclude={"remaining"}) == renewed.model_dump(
        exclude={"remaining"}
    )


async def test_an_entry_becomes_large_by_its_characters_and_keeps_its_details(
    working_memory: WorkingMemory,
) -> None:
    tags = ['"large":false}', "b"]
    await queries.put(working_memory, KEY, "é" * 15_999, tags=tags)
    assert not (await queries.append(working_memory, KEY, "日")).large
    entry = await queries.append(working_memory, KEY, "\n# Next\n🎉")
    assert entry.large
    assert entry.value == "é" * 15_999 + "日\n# Next\n🎉"
    assert entry.tags == tuple(tags)
    outline = (await queries.get(working_memory, KEY)).value
    assert outline.startswith("Document Outline (16009 characters)")
    assert (await queries.get(working_memory, f"{KEY}-chunk1")).value == "# Next\n🎉"


async def test_a_value_never_exceeds_its_limit_by_appending(working_memory: WorkingMemory) -> None:
    await queries.put(working_memory, KEY, "x" * (rules.MAX_VALUE_BYTES - 3))
    with pytest.raises(errors.TooLarge, match="append: must not make the value longer than 1048576 bytes"):
        await queries.append(working_memory, KEY, "éé")
    await queries.append(working_memory, KEY, "éx")
    with pytest.raises(errors.TooLarge):
        await queries.append(working_memory, KEY, "x")
    entry = await queries.get(working_memory, KEY, full=True)
    assert len(entry.value.encode()) == rules.MAX_VALUE_BYTES
    with pytest.raises(errors.TooLarge, match="value: must not make the value longer"):
        await queries.put(working_memory, KEY, "x" * (rules.MAX_VALUE_BYTES + 1))


async def test_a_request_appends_once_while_its_entry_lives(working_memory: WorkingMemory) -> None:
    await queries.put(working_memory, KEY, "a")
    first = await queries.append(working_memory, KEY, "b", request_id="r1")
    await queries.append(working_memory, KEY, "c", request_id="r2")
    repeated = await queries.append(working_memory, KEY, "b", request_id="r1", expected={first.version})
    assert repeated.value == "abc"
    await queries.delete(working_memory, KEY)
    assert await list_redis_keys(working_memory, "session/abc*") == []


async def test_no_more_requests_are_remembered_than_can_be_under_way(working_memory: WorkingMemory) -> None:
    await queries.put(working_memory, KEY, "")
    names = working_memory.keys_of("session/abc")
    await working_memory.redis.zadd(names[3], {f"old{number}": number for number in range(1000)})
    await queries.append(working_memory, KEY, "x", request_id="new")
    assert await working_memory.redis.zcard(names[3]) == 1000
    assert await working_memory.redis.zrange(names[3], -1, -1) == ["new"]


async def test_an_empty_append_and_an_unknown_key_are_refused(working_memory: WorkingMemory) -> None:
    with pytest.raises(errors.Invalid, match="append: must not be empty"):
        await queries.append(working_memory, KEY, "")
    with pytest.raises(errors.NotFound, match=KEY):
        await queries.append(working_memory, KEY, "x")
    with pytest.raises(errors.Invalid, match="read-only parts"):
        await queries.append(working_memory, f"{KEY}-index", "x")
    with pytest.raises(errors.Invalid, match="ttl_seconds"):
        await queries.append(working_memory, KEY, "x", ttl_seconds=rules.MAX_TTL_SECONDS + 1)


async def test_a_full_namespace_takes_appends(working_memory: WorkingMemory) -> None:
    settings = working_memory.settings.model_copy(update={"working_max_entries": 1})
    full = replace(working_memory, settings=settings)
    await queries.put(full, KEY, "a")
    assert (await queries.append(full, KEY, "b")).value == "ab"
