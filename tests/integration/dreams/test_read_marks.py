"""What a pass is marked to have read is exactly that: this pass, this record, this version."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import delete, select, update

from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.table import session as session_table
from shared.conversation.turns.table import turn as turn_table
from shared.dreams.runs import (
    evaluated_session_queries,
    progress_queries,
    unread_signal_queries,
    unread_turn_queries,
)
from shared.dreams.runs.table import dream_read_signal, dream_read_turn
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import memory as memory_table
from tests.conftest import Gateway
from tests.integration.dreams.conftest import add_turns, create_session, list_unread

PREFERENCES, EPISODES = DreamPass.INFER_PREFERENCES, DreamPass.EXTRACT_EPISODES


async def mark_turns(gateway: Gateway, name: DreamPass, *turns: tuple[str, int]) -> None:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await unread_turn_queries.mark_read(tx, Scope(gateway.tenant), name, turns)


async def test_a_turn_is_read_by_the_pass_that_read_it(gateway: Gateway) -> None:
    first = await create_session(gateway, "one", "two")
    await create_session(gateway, "three")
    await mark_turns(gateway, PREFERENCES, (first, 1))
    assert sorted(await list_unread(gateway, PREFERENCES)) == ["three", "two"]
    assert len(await list_unread(gateway, EPISODES)) == 3


async def test_a_turn_may_be_marked_twice_and_one_that_was_deleted_is_left_out(gateway: Gateway) -> None:
    session = await create_session(gateway, "one", "two")
    for _ in range(2):
        await mark_turns(gateway, PREFERENCES, (session, 1), ("deleted", 7))
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        marks = await tx.execute(select(dream_read_turn.c.session_id, dream_read_turn.c.seq))
        assert [tuple(mark) for mark in marks] == [(session, 1)]


async def test_a_pass_reads_the_turns_of_its_own_scope(gateway: Gateway) -> None:
    session = (await gateway.client.post("/v1/sessions", json={"user_id": "ada"})).json()["id"]
    await add_turns(gateway, session, "from Ada")
    await create_session(gateway, "from nobody")
    assert await list_unread(gateway, PREFERENCES) == ["from nobody"]


async def unread_corrections(gateway: Gateway, name: DreamPass) -> list[str]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        signals = await unread_signal_queries.list_unread_corrections(
            tx, Scope(gateway.tenant), name, days=1, limit=10
        )
    return [signal.id for signal in signals]


async def test_a_correction_is_read_by_the_pass_that_read_it(gateway: Gateway) -> None:
    name, other = DreamPass.MINE_ANTI_PATTERNS, DreamPass.CONSOLIDATE
    wrong = ["No, that's wrong: the port is 5433.", "No, that's wrong: the backup runs at 2 am."]
    session = await create_session(gateway, *wrong)
    await gateway.client.post(
        f"/v1/sessions/{session}/feedback", json={"type": "ToolFailure", "summary": "The build failed."}
    )
    signal_ids = await unread_corrections(gateway, name)
    assert len(signal_ids) == 2, "no other signal"
    for _ in range(2):
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
            scope = Scope(gateway.tenant)
            await unread_signal_queries.mark_read(tx, scope, name, [signal_ids[0], "deleted"])
            marks = await tx.scalars(select(dream_read_signal.c.signal_id))
            assert list(marks) == [signal_ids[0]]
    assert await unread_corrections(gateway, name) == [signal_ids[1]]
    assert len(await unread_corrections(gateway, other)) == 2


async def unevaluated(gateway: Gateway) -> list[str]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        earlier = session_table.c.last_turn_at - timedelta(hours=1)
        await tx.execute(update(session_table).values(last_turn_at=earlier))
        is_unevaluated = evaluated_session_queries.is_unevaluated()
        sessions = await session_queries.list_idle(tx, Scope(gateway.tenant), 60, 10, is_unevaluated)
    return sorted(sessions)


async def test_a_session_is_evaluated_up_to_its_last_turn(gateway: Gateway) -> None:
    first = await create_session(gateway, "one", "two")
    second = await create_session(gateway, "three", "four")
    expired = await create_session(gateway, "five", "six")
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(delete(turn_table).where(turn_table.c.session_id == expired))
    assert await unevaluated(gateway) == sorted([first, second])
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await evaluated_session_queries.mark_evaluated(tx, first, 1)
        await evaluated_session_queries.mark_evaluated(tx, "deleted", 1)
    assert await unevaluated(gateway) == sorted([first, second]), "not up to its last turn"
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await evaluated_session_queries.mark_evaluated(tx, first, 2)
    assert await unevaluated(gateway) == [second]
    await add_turns(gateway, first, "five")
    assert await unevaluated(gateway) == sorted([first, second])


async def test_a_session_is_left_alone_after_two_useless_replies_until_its_next_turn(
    gateway: Gateway,
) -> None:
    session = await create_session(gateway, "one", "two")

    async def refuse(seq: int) -> list[str]:
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
            await evaluated_session_queries.mark_refused(tx, session, seq)
        return await unevaluated(gateway)

    assert await refuse(2) == [session]
    assert await refuse(2) == []
    await add_turns(gateway, session, "three")
    assert await unevaluated(gateway) == [session]
    assert await refuse(3) == [session], "counted anew"
    assert await refuse(3) == []


async def save_memory(gateway: Gateway, content: str) -> Memory:
    body = {"content": content, "enrich": False}
    memory_id = (await gateway.client.post("/v1/memories", json=body)).json()["id"]
    return await read_memory(gateway, memory_id)


async def read_memory(gateway: Gateway, memory_id: str) -> Memory:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        [memory] = await memory_queries.read(tx, [memory_id])
    return memory


async def refused(gateway: Gateway, memories: Sequence[Memory]) -> dict[str, int]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return await progress_queries.list_refused(tx, memories)


async def test_a_memory_is_set_aside_until_it_changes_or_is_reviewed(gateway: Gateway) -> None:
    memories = [await save_memory(gateway, f"Ada has boat {number}.") for number in range(3)]
    sizes = {memory.id: 4 for memory in memories} | {"deleted": 4}
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await progress_queries.save_refused(tx, sizes)
    assert len(await refused(gateway, memories)) == 3

    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        reviewed = {memories[0].id: 1, "deleted": 1}
        await progress_queries.save_reviewed(tx, reviewed)
        newer = update(memory_table).where(memory_table.c.id == memories[1].id)
        await tx.execute(newer.values(version=memory_table.c.version + 1))
    memories = [await read_memory(gateway, memory.id) for memory in memories]
    assert await refused(gateway, memories) == {memories[2].id: 4}


async def test_the_last_reviewed_version_of_a_memory_counts(gateway: Gateway) -> None:
    memory = await save_memory(gateway, "Ada has a boat.")
    scope = Scope(gateway.tenant)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for version in (1, 2):
            await progress_queries.save_reviewed(tx, {memory.id: version})
            assert await progress_queries.list_reviewed(tx, scope, [memory.id]) == {memory.id: version}
        await tx.execute(delete(memory_table).where(memory_table.c.id == memory.id))
        await progress_queries.save_reviewed(tx, {memory.id: 3})
