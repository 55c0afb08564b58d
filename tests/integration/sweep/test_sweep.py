"""A whole sweep: safe to repeat and to run concurrently; a step without its database is skipped."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import pytest
from pydantic import SecretStr

from shared.foundation.stages import RecordKind
from shared.platform.idempotency.idempotent import IdempotencyKey
from shared.platform.resources import open_resources
from tests.integration.sweep.stack import TestStack
from workers.sweep import sweep
from workers.sweep.sweep import Counts


@pytest.fixture
def unused_address() -> str:
    """Return an address of this machine that refuses connections."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{unused.getsockname()[1]}"


async def fill_with_everything(stack: TestStack) -> None:
    """Create one case of everything that a sweep repairs."""
    archived, with_old_history, without_point = [
        await stack.save(name) for name in ("archived", "noted", "lost")
    ]
    expired, open_session = await stack.open_session(ttl_seconds=60), await stack.open_session()
    await stack.add_turn(expired, "said in a session that is over")
    await stack.add_turn(open_session, "said long ago")
    await stack.add_turn(open_session, "said today")
    await stack.put_working(f"session/{expired}/note", "note")
    await stack.client.post("/v1/memories", json={"content": "keyed"}, headers={"Idempotency-Key": "k"})
    await stack.resources.index_writer.close()
    await stack.sql("UPDATE memory SET state = 'archived' WHERE id = :id", id=archived)
    await stack.backdate("memory", "archived_at", 91, id=archived)
    await stack.backdate("memory_history", "created_at", 31, memory_id=with_old_history)
    await stack.backdate("session", "expires_at", 1, id=expired)
    await stack.backdate("turn", "received_at", 11, session_id=open_session, seq=1)
    keyed = IdempotencyKey("POST /v1/memories", "k", b"")
    await stack.backdate("idempotent_response", "created_at", 2, key=keyed.stored_name[1])
    await stack.add_point(RecordKind.MEMORY, "ffffffffffff", 1)
    await stack.add_point(RecordKind.WORKING, "session/x/over", 1, expires_at="2020-01-01T00:00:00Z")
    await stack.delete_points(RecordKind.MEMORY, [without_point])


ALL_REPAIRS = {
    "expired_sessions": 1,
    "expired_working_points": 1,
    "orphan_points": 1,
    "missing_points": 1,
    "purged_archived": 1,
    "expired_turns": 1,
    "expired_history": 1,
    "expired_responses": 1,
    "forgotten_namespaces": 1,
}


def repairs_of(counts: Counts) -> dict[str, Any]:
    return {name: number for name, number in asdict(counts).items() if number}


async def test_one_sweep_repairs_and_counts_everything_and_leaves_nothing_for_the_next(
    stack: TestStack,
) -> None:
    await fill_with_everything(stack)
    assert repairs_of(await stack.sweep()) == ALL_REPAIRS
    assert await stack.repairs() == ALL_REPAIRS
    await stack.process_all()
    assert repairs_of(await stack.sweep()) == {}
    assert await stack.repairs() == ALL_REPAIRS


async def test_two_sweeps_at_once_do_no_harm_and_count_every_deletion_once(stack: TestStack) -> None:
    await fill_with_everything(stack)
    await stack.resources.index_writer.close()
    results = await asyncio.gather(*(sweep.sweep_once(stack.resources) for _ in range(2)))
    rows = ("expired_sessions", "purged_archived", "expired_turns", "expired_history", "expired_responses")
    assert {name: sum(getattr(counts, name) for counts in results) for name in rows} == dict.fromkeys(rows, 1)
    await stack.process_all()
    assert repairs_of(await stack.sweep()) == {}
    assert sorted(row.content for row in await stack.sql("SELECT content FROM memory")) == [
        "keyed",
        "lost",
        "noted",
    ]
    assert {version for _, version in await stack.points()} == {1}
    assert len(await stack.points()) == 3
    assert len(await stack.points(RecordKind.TURN)) == 1


@asynccontextmanager
async def with_settings(stack: TestStack, **changes: Any) -> AsyncIterator[TestStack]:
    """Open the stack with changed settings."""
    settings = stack.resources.settings.model_copy(update=changes)
    async with open_resources(settings) as resources:
        yield TestStack(type(stack.gateway)(stack.client, resources, stack.tenant))


async def test_without_qdrant_the_rows_are_repaired_and_the_points_follow_later(
    stack: TestStack, unused_address: str
) -> None:
    await fill_with_everything(stack)
    async with with_settings(stack, qdrant_url=f"http://{unused_address}") as degraded_stack:
        counts = repairs_of(await degraded_stack.sweep())
    points = {"expired_working_points", "orphan_points", "missing_points"}
    assert counts == {name: number for name, number in ALL_REPAIRS.items() if name not in points}
    await stack.process_all()
    repairs = repairs_of(await stack.sweep())
    assert repairs.keys() <= points
    await stack.process_all()
    assert len(await stack.points()) == 3
    assert {record_id for record_id, _ in await stack.points(RecordKind.WORKING)} == set()


async def test_without_redis_its_step_is_skipped_and_the_others_run(
    stack: TestStack, unused_address: str
) -> None:
    await fill_with_everything(stack)
    async with with_settings(
        stack, redis_url=SecretStr(f"redis://{unused_address}"), broker_url=SecretStr("memory://")
    ) as degraded_stack:
        counts = repairs_of(await degraded_stack.sweep())
    assert counts["expired_working_points"] == 1
    assert repairs_of(await stack.sweep()).keys() <= ALL_REPAIRS.keys()
    await stack.process_all()
    await stack.sweep()
    assert repairs_of(await stack.sweep()) == {}
    assert len(await stack.points()) == 3


async def test_without_postgres_a_sweep_ends_without_an_error(stack: TestStack, unused_address: str) -> None:
    async with with_settings(
        stack, postgres_url=SecretStr(f"postgresql://x@{unused_address}/x")
    ) as degraded_stack:
        assert repairs_of(await sweep.sweep_once(degraded_stack.resources)) == {}


async def test_the_metrics_name_every_count_of_a_sweep() -> None:
    assert set(asdict(Counts())) >= {
        *ALL_REPAIRS,
        "exhausted_jobs",
        "generations_begun",
        "expired_embeddings",
    }
