"""Retention: expired records are deleted from every database, and no record a day before its time."""

from collections.abc import Callable

from shared.conversation.sessions import queries as session_queries
from shared.foundation import config
from shared.foundation.stages import RecordKind
from shared.platform.idempotency.idempotent import IdempotencyKey
from tests.conftest import running_gateway
from tests.integration.sweep.stack import TestStack
from tests.standins.models import ModelServer


async def test_an_expired_session_is_deleted_with_turns_points_and_working_memory(stack: TestStack) -> None:
    """SE9."""
    expired, unexpired, permanent = (
        await stack.open_session(ttl_seconds=60),
        await stack.open_session(ttl_seconds=60),
        await stack.open_session(),
    )
    for session in (expired, unexpired, permanent):
        await stack.add_turn(session, f"marmalade in {session}")
        await stack.put_working(f"session/{session}/note", "a note")
    await stack.backdate("session", "expires_at", 0.001, id=expired)
    counts = await stack.sweep()
    assert counts.expired_sessions == 1
    assert await stack.sql("SELECT id FROM session WHERE id = :id", id=expired) == []
    assert await stack.sql("SELECT 1 FROM turn WHERE session_id = :id", id=expired) == []
    assert {record_id.split("#")[0] for record_id, _ in await stack.points(RecordKind.TURN)} == {
        unexpired,
        permanent,
    }
    assert await stack.status_of(f"/v1/sessions/{expired}") == 404
    assert await stack.status_of(f"/v1/working/session/{expired}/note") == 404
    for session in (unexpired, permanent):
        assert await stack.status_of(f"/v1/sessions/{session}") == 200
        assert await stack.status_of(f"/v1/working/session/{session}/note") == 200
    await stack.process_all()
    assert {record_id.split("/")[1] for record_id, _ in await stack.points(RecordKind.WORKING)} == {
        unexpired,
        permanent,
    }
    assert (await stack.repairs())["expired_sessions"] == 1
    assert (await stack.sweep()).expired_sessions == 0


async def test_a_session_that_another_sweep_has_locked_is_skipped(stack: TestStack) -> None:
    expired = await stack.open_session(ttl_seconds=60)
    await stack.backdate("session", "expires_at", 0.001, id=expired)
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        locked = await session_queries.lock_expired(tx, 10)
        assert [session.id for session in locked] == [expired]
        assert (await stack.sweep()).expired_sessions == 0
    assert (await stack.sweep()).expired_sessions == 1


async def test_the_working_memory_of_a_patrol_is_kept_for_its_next_run(stack: TestStack) -> None:
    """A patrol's next run has the same working memory as its last one."""
    expired = await stack.open_session(kind="patrol", name="Nightly", ttl_seconds=60)
    await stack.open_session(kind="patrol", name="Nightly")
    expired_alone = await stack.open_session(kind="patrol", name="once", ttl_seconds=60)
    await stack.put_working("patrol/nightly/finding", "a leak")
    await stack.put_working("patrol/once/finding", "a leak")
    for session in (expired, expired_alone):
        await stack.backdate("session", "expires_at", 0.001, id=session)
    assert (await stack.sweep()).expired_sessions == 2
    assert await stack.status_of("/v1/working/patrol/nightly/finding") == 200
    assert await stack.status_of("/v1/working/patrol/once/finding") == 200


async def test_an_archived_memory_is_purged_after_ninety_days_and_not_after_eighty_nine(
    stack: TestStack,
) -> None:
    ids = {days: await stack.save(f"archived {days} days ago") for days in (91, 89)}
    old_but_live = await stack.save("never archived")
    successor = await stack.save("its successor")
    for days, memory_id in ids.items():
        await stack.sql("UPDATE memory SET state = 'archived', version = 2 WHERE id = :id", id=memory_id)
        await stack.backdate("memory", "archived_at", days, id=memory_id)
    await stack.sql("UPDATE memory SET derived_from = ARRAY[:old] WHERE id = :id", old=ids[91], id=successor)
    await stack.backdate("memory", "created_at", 400, id=old_but_live)
    counts = await stack.sweep()
    await stack.process_all()
    assert counts.purged_archived == 1
    assert await stack.status_of(f"/v1/memories/{ids[91]}") == 404
    assert await stack.sql("SELECT 1 FROM memory_history WHERE memory_id = :id", id=ids[91]) == []
    for memory_id in (ids[89], old_but_live, successor):
        assert await stack.status_of(f"/v1/memories/{memory_id}") == 200
    assert await stack.sql("SELECT derived_from FROM memory WHERE id = :id", id=successor) == [([],)]
    assert {record_id for record_id, _ in await stack.points()} == {ids[89], old_but_live, successor}
    assert (await stack.repairs())["purged_archived"] == 1


async def test_evidence_of_a_live_memory_is_purged_after_a_year_with_its_points(stack: TestStack) -> None:
    ids = {days: await stack.save(f"rewritten {days} days ago") for days in (366, 364)}
    successor = await stack.save("what they became")
    archived = "UPDATE memory SET state = 'archived', archived_by = 'dream', archived_at = now(), version = 2"
    for days, memory_id in ids.items():
        statement = f"{archived}, superseded_by = ARRAY[:live] WHERE id = :id"
        await stack.sql(statement, id=memory_id, live=successor)
        await stack.backdate("memory", "archived_at", days, id=memory_id)
    counts = await stack.sweep()
    await stack.process_all()
    assert counts.purged_archived == 1
    assert await stack.status_of(f"/v1/memories/{ids[366]}") == 404
    assert {record_id for record_id, _ in await stack.points()} == {ids[364], successor}


async def test_a_purged_text_may_be_saved_again(stack: TestStack) -> None:
    """Purging, unlike deleting, leaves no tombstone."""
    memory_id = await stack.save("once more")
    await stack.sql("UPDATE memory SET state = 'archived' WHERE id = :id", id=memory_id)
    await stack.backdate("memory", "archived_at", 91, id=memory_id)
    await stack.sweep()
    assert await stack.sql("SELECT 1 FROM memory_tombstone") == []
    assert await stack.save("once more") != memory_id


async def test_stored_responses_are_kept_for_a_day(stack: TestStack) -> None:
    for key in ("old", "new"):
        await stack.client.post("/v1/memories", json={"content": key}, headers={"Idempotency-Key": key})
    old, new = (IdempotencyKey("POST /v1/memories", key, b"").stored_name[1] for key in ("old", "new"))
    await stack.backdate("idempotent_response", "created_at", 25 / 24, key=old)
    await stack.backdate("idempotent_response", "created_at", 23 / 24, key=new)
    assert (await stack.sweep()).expired_responses == 1
    assert await stack.sql("SELECT key FROM idempotent_response") == [(new,)]
    assert (await stack.repairs())["expired_responses"] == 1


async def test_history_is_kept_as_long_as_the_setting_says(stack: TestStack) -> None:
    old, new = await stack.save("old"), await stack.save("new")
    await stack.backdate("memory_history", "created_at", 31, memory_id=old)
    await stack.backdate("memory_history", "created_at", 29, memory_id=new)
    assert (await stack.sweep()).expired_history == 1
    assert await stack.sql("SELECT memory_id FROM memory_history") == [(new,)]
    assert await stack.status_of(f"/v1/memories/{old}") == 200


async def test_turns_are_kept_as_long_as_the_setting_says_by_when_they_were_received(
    stack: TestStack,
) -> None:
    """CV2."""
    session = await stack.open_session()
    for content in ("old", "recent"):
        await stack.add_turn(session, content)
    await stack.add_turn(session, "reported long after", created_at="2001-01-01T00:00:00Z")
    await stack.backdate("turn", "received_at", 11, seq=1)
    await stack.backdate("turn", "received_at", 9, seq=2)
    assert (await stack.sweep()).expired_turns == 1
    assert await stack.sql("SELECT seq FROM turn ORDER BY seq") == [(2,), (3,)]
    assert {record_id for record_id, _ in await stack.points(RecordKind.TURN)} == {
        f"{session}#2",
        f"{session}#3",
    }
    assert (await stack.repairs())["expired_turns"] == 1


async def test_a_summary_is_kept_as_long_as_turns_are_from_when_it_was_written(stack: TestStack) -> None:
    """CV3: what it has is past the retention of turns by then."""
    sessions = [await stack.open_session(), await stack.open_session()]
    for session, days in zip(sessions, (11, 9), strict=True):
        await stack.sql(
            "INSERT INTO session_summary (tenant, session_id, content, first_seq, last_seq, model)"
            " VALUES (:tenant, :session, 'They met.', 1, 2, 'm')",
            tenant=stack.tenant,
            session=session,
        )
        await stack.backdate("session_summary", "updated_at", days, session_id=session)
    assert (await stack.sweep()).expired_summaries == 1
    assert await stack.sql("SELECT session_id FROM session_summary") == [(sessions[1],)]


async def test_turns_and_history_are_kept_by_default(
    make_settings: Callable[..., config.Settings], tenant: str
) -> None:
    async with running_gateway(make_settings(apart=True), tenant) as gateway:
        stack = TestStack(gateway)
        session, memory_id = await stack.open_session(), await stack.save("kept")
        await stack.add_turn(session, "kept")
        await stack.backdate("turn", "received_at", 4000, seq=1)
        await stack.backdate("memory_history", "created_at", 4000, memory_id=memory_id)
        await stack.backdate("memory", "last_seen_at", 4000, id=memory_id)
        counts = await stack.sweep()
        assert (counts.expired_turns, counts.expired_history, counts.purged_archived) == (0, 0, 0)
        assert len(await stack.sql("SELECT 1 FROM turn UNION ALL SELECT 1 FROM memory_history")) == 2


async def test_cached_embeddings_unused_for_long_are_deleted(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> None:
    """IX6."""
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="m")
    async with running_gateway(settings, tenant) as gateway:
        stack = TestStack(gateway)
        await stack.save("one")
        await stack.save("two")
        await stack.process_all()
        digests = [row.digest for row in await stack.sql("SELECT digest FROM embedding_cache")]
        assert len(digests) == 2
        await stack.backdate("embedding_cache", "used_at", 31, digest=digests[0])
        await stack.backdate("embedding_cache", "used_at", 29, digest=digests[1])
        assert (await stack.sweep()).expired_embeddings == 1
        assert [row.digest for row in await stack.sql("SELECT digest FROM embedding_cache")] == digests[1:]
        assert (await stack.repairs())["expired_embeddings"] == 1
