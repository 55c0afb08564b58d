"""Retention: what has outlived its time goes, with every trace in every store; the day before it stays."""

from collections.abc import Callable

from shared.conversation.sessions import queries as session_queries
from shared.foundation import config
from shared.foundation.stages import RecordKind
from tests.conftest import serving
from tests.integration.sweep.house import TestStack
from tests.standins.models import ModelServer


async def test_a_session_whose_time_is_over_goes_with_turns_points_and_desk(house: TestStack) -> None:
    """SE9."""
    over, later, without = (
        await house.open(ttl_seconds=60),
        await house.open(ttl_seconds=60),
        await house.open(),
    )
    for session in (over, later, without):
        await house.say(session, f"marmalade in {session}")
        await house.lay(f"session/{session}/note", "a note")
    await house.backdate("session", "expires_at", 0.001, id=over)
    counts = await house.sweep()
    assert counts.expired_sessions == 1
    assert await house.sql("SELECT id FROM session WHERE id = :id", id=over) == []
    assert await house.sql("SELECT 1 FROM turn WHERE session_id = :id", id=over) == []
    assert {ref.split("#")[0] for ref, _ in await house.points(RecordKind.TURN)} == {later, without}
    assert await house.status_of(f"/v1/sessions/{over}") == 404
    assert await house.status_of(f"/v1/working/session/{over}/note") == 404
    for session in (later, without):
        assert await house.status_of(f"/v1/sessions/{session}") == 200
        assert await house.status_of(f"/v1/working/session/{session}/note") == 200
    await house.settle()
    assert {ref.split("/")[1] for ref, _ in await house.points(RecordKind.WORKING)} == {later, without}
    assert (await house.repairs())["expired_sessions"] == 1
    assert (await house.sweep()).expired_sessions == 0


async def test_a_session_that_another_sweep_has_in_hand_is_left_to_it(house: TestStack) -> None:
    over = await house.open(ttl_seconds=60)
    await house.backdate("session", "expires_at", 0.001, id=over)
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        assert [one for one, _ in await session_queries.expired(connection, house.tenant, 10)] == [over]
        assert (await house.sweep()).expired_sessions == 0
    assert (await house.sweep()).expired_sessions == 1


async def test_a_desk_that_another_session_works_on_is_left(house: TestStack) -> None:
    """A patrol's next run has the same desk as its last one."""
    over = await house.open(kind="patrol", name="Nightly", ttl_seconds=60)
    await house.open(kind="patrol", name="Nightly")
    alone = await house.open(kind="patrol", name="once", ttl_seconds=60)
    await house.lay("patrol/nightly/finding", "a leak")
    await house.lay("patrol/once/finding", "a leak")
    for session in (over, alone):
        await house.backdate("session", "expires_at", 0.001, id=session)
    assert (await house.sweep()).expired_sessions == 2
    assert await house.status_of("/v1/working/patrol/nightly/finding") == 200
    assert await house.status_of("/v1/working/patrol/once/finding") == 404


async def test_an_archived_entry_is_purged_after_ninety_days_and_not_after_eighty_nine(
    house: TestStack,
) -> None:
    ids = {days: await house.save(f"archived {days} days ago") for days in (91, 89)}
    old_but_live = await house.save("never archived")
    heir = await house.save("what became of it")
    for days, entry in ids.items():
        await house.sql("UPDATE memory SET state = 'archived', version = 2 WHERE id = :id", id=entry)
        await house.backdate("memory", "archived_at", days, id=entry)
    await house.sql("UPDATE memory SET derived_from = ARRAY[:old] WHERE id = :id", old=ids[91], id=heir)
    await house.backdate("memory", "created_at", 400, id=old_but_live)
    counts = await house.sweep()
    await house.settle()
    assert counts.purged_archived == 1
    assert await house.status_of(f"/v1/memories/{ids[91]}") == 404
    assert await house.sql("SELECT 1 FROM memory_history WHERE memory_id = :id", id=ids[91]) == []
    for kept in (ids[89], old_but_live, heir):
        assert await house.status_of(f"/v1/memories/{kept}") == 200
    assert await house.sql("SELECT derived_from FROM memory WHERE id = :id", id=heir) == [([],)]
    assert {ref for ref, _ in await house.points()} == {ids[89], old_but_live, heir}
    assert (await house.repairs())["purged_archived"] == 1


async def test_a_purged_text_may_be_saved_again(house: TestStack) -> None:
    """Purging is no forgetting: it leaves no tombstone."""
    entry = await house.save("once more")
    await house.sql("UPDATE memory SET state = 'archived' WHERE id = :id", id=entry)
    await house.backdate("memory", "archived_at", 91, id=entry)
    await house.sweep()
    assert await house.sql("SELECT 1 FROM memory_tombstone") == []
    assert await house.save("once more") != entry


async def test_stored_answers_are_kept_for_a_day(house: TestStack) -> None:
    for key in ("old", "new"):
        await house.client.post("/v1/memories", json={"content": key}, headers={"Idempotency-Key": key})
    await house.backdate("idempotent_response", "created_at", 25 / 24, key="old")
    await house.backdate("idempotent_response", "created_at", 23 / 24, key="new")
    assert (await house.sweep()).expired_responses == 1
    assert await house.sql("SELECT key FROM idempotent_response") == [("new",)]
    assert (await house.repairs())["expired_answers"] == 1


async def test_history_is_kept_as_long_as_the_setting_says(house: TestStack) -> None:
    old, new = await house.save("old"), await house.save("new")
    await house.backdate("memory_history", "created_at", 31, memory_id=old)
    await house.backdate("memory_history", "created_at", 29, memory_id=new)
    assert (await house.sweep()).expired_history == 1
    assert await house.sql("SELECT memory_id FROM memory_history") == [(new,)]
    assert await house.status_of(f"/v1/memories/{old}") == 200


async def test_turns_are_kept_as_long_as_the_setting_says_by_when_they_were_received(
    house: TestStack,
) -> None:
    """CV2."""
    session = await house.open()
    for said in ("old", "recent"):
        await house.say(session, said)
    await house.say(session, "told of long ago", created_at="2001-01-01T00:00:00Z")
    await house.backdate("turn", "received_at", 11, seq=1)
    await house.backdate("turn", "received_at", 9, seq=2)
    assert (await house.sweep()).expired_turns == 1
    assert await house.sql("SELECT seq FROM turn ORDER BY seq") == [(2,), (3,)]
    assert {ref for ref, _ in await house.points(RecordKind.TURN)} == {f"{session}#2", f"{session}#3"}
    assert (await house.repairs())["expired_turns"] == 1


async def test_nothing_is_lost_by_default_for_want_of_a_setting(
    make_settings: Callable[..., config.Settings], tenant: str
) -> None:
    async with serving(make_settings(apart=True), tenant) as gateway:
        house = TestStack(gateway)
        session, entry = await house.open(), await house.save("kept")
        await house.say(session, "kept")
        await house.backdate("turn", "received_at", 4000, seq=1)
        await house.backdate("memory_history", "created_at", 4000, memory_id=entry)
        await house.backdate("memory", "last_seen_at", 4000, id=entry)
        counts = await house.sweep()
        assert (counts.expired_turns, counts.expired_history, counts.purged_archived) == (0, 0, 0)
        assert len(await house.sql("SELECT 1 FROM turn UNION ALL SELECT 1 FROM memory_history")) == 2


async def test_cached_vectors_unused_for_long_go(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> None:
    """IX6."""
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="m")
    async with serving(settings, tenant) as gateway:
        house = TestStack(gateway)
        await house.save("one")
        await house.save("two")
        await house.settle()
        digests = [row.digest for row in await house.sql("SELECT digest FROM embedding_cache")]
        assert len(digests) == 2
        await house.backdate("embedding_cache", "used_at", 31, digest=digests[0])
        await house.backdate("embedding_cache", "used_at", 29, digest=digests[1])
        assert (await house.sweep()).expired_embeddings == 1
        assert [row.digest for row in await house.sql("SELECT digest FROM embedding_cache")] == digests[1:]
        assert (await house.repairs())["expired_vectors"] == 1
