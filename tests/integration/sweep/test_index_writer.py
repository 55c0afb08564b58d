"""IX1: what a writer does itself, what it leaves to a worker, and whom it wakes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest
from sqlalchemy import func, select

from shared.foundation import errors, stages
from shared.foundation.stages import RecordKind
from shared.infra.broker import TaskPublisher
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.jobs.table import job as job_table
from shared.memory.longterm import index_document, queries
from shared.search.index import points
from shared.search.index.missing_points import MissingPoints
from shared.search.index.points import IndexDocument
from shared.search.index.writer import WRITE_THROUGH_SECONDS, IndexWriter
from tests.integration.sweep.stack import TestStack
from tests.wake_ups import WakeUps


@pytest.fixture
def wake_ups() -> WakeUps:
    return WakeUps()


@pytest.fixture
async def writer(stack: TestStack, wake_ups: WakeUps) -> AsyncIterator[IndexWriter]:
    opened = stack.resources
    writer = IndexWriter(
        opened.postgres, opened.qdrant, cast(TaskPublisher, wake_ups), MissingPoints(opened.postgres)
    )
    yield writer
    await writer.close()


@pytest.fixture
async def saved(stack: TestStack) -> tuple[Sequence[IndexDocument], list[Job]]:
    """The document and the index job of a memory whose points are not written yet."""
    memory_id = await stack.save("The heron nests by the weir.", enrich=False)
    await stack.resources.index_writer.close()
    await stack.delete_points(RecordKind.MEMORY, [memory_id])
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        [memory] = await queries.read(tx, [memory_id])
        versions = {memory_id: memory.version}
        jobs = await index_jobs.enqueue_index_jobs(
            tx, stack.tenant, RecordKind.MEMORY, versions, delay=WRITE_THROUGH_SECONDS
        )
        is_of_memory = job_table.c.record_id == memory_id
        wait = await tx.scalar(select(job_table.c.run_at - func.now()).where(is_of_memory))
        assert wait is not None
        assert wait.total_seconds() == 5, "the time that a writer has before a worker"
        return await index_document.load_documents(tx, [memory_id]), jobs


async def stages_of_jobs(stack: TestStack) -> list[str]:
    rows = await stack.sql(
        "SELECT stage FROM job WHERE pipeline = 'index' AND tenant = :tenant", tenant=stack.tenant
    )
    return [row.stage for row in rows]


async def test_what_is_written_is_confirmed_and_wakes_nobody_without_a_model(
    stack: TestStack, writer: IndexWriter, wake_ups: WakeUps, saved: tuple[Any, list[Job]]
) -> None:
    assert await writer.write_through(*saved)
    await writer.close()
    assert await stages_of_jobs(stack) == []
    assert wake_ups.sent == []


async def test_closing_confirms_at_once(
    stack: TestStack, writer: IndexWriter, saved: tuple[Any, list[Job]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.search.index.writer._CONFIRM_DELAY_SECONDS", 600)
    assert await writer.write_through(*saved)
    assert await stages_of_jobs(stack) == ["index"]
    await asyncio.wait_for(writer.close(), 60)
    assert await stages_of_jobs(stack) == []


async def test_what_has_to_be_embedded_wakes_a_worker(
    stack: TestStack, writer: IndexWriter, wake_ups: WakeUps, saved: tuple[Any, list[Job]]
) -> None:
    set_model = "UPDATE index_generation SET model = {} WHERE kind = 'memory'"
    await stack.sql(set_model.format("'m'"))
    try:
        await writer.write_through(*saved)
        await writer.close()
    finally:
        await stack.sql(set_model.format("NULL"))
    assert await stages_of_jobs(stack) == ["embed"]
    assert wake_ups.sent == [(stages.EMBED, 1)]
    await stack.sql("DELETE FROM job WHERE tenant = :tenant", tenant=stack.tenant)


async def test_what_cannot_be_written_is_left_to_a_worker_or_to_the_repeated_request(
    stack: TestStack,
    writer: IndexWriter,
    wake_ups: WakeUps,
    saved: tuple[Any, list[Job]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> None:
        raise errors.Unavailable("qdrant", "away")

    with monkeypatch.context() as patch:
        patch.setattr(points, "write_records", fail)
        assert not await writer.write_through(*saved)
    assert wake_ups.sent == [(stages.INDEX, 1)]
    assert await stages_of_jobs(stack) == ["index"]

    [document] = saved[0]
    ids = [document.record_id]
    await writer.write_through_unindexed(stack.tenant, RecordKind.MEMORY, ids, index_document.load_documents)
    await writer.close()
    assert await stack.record_ids(RecordKind.MEMORY) == set(ids)
    assert await stages_of_jobs(stack) == []


async def test_a_search_waits_for_the_writes_of_its_own_tenant(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write = asyncio.Event()

    async def write_later(*_: object) -> bool:
        return await may_write.wait()

    monkeypatch.setattr(writer, "write_through", write_later)
    writer.write_soon("a", [], [])
    try:
        await asyncio.wait_for(writer.finish_writes("b"), 5)
        waiting = asyncio.create_task(writer.finish_writes("a"))
        await asyncio.sleep(0)
        assert not waiting.done()
    finally:
        may_write.set()
    await asyncio.wait_for(waiting, 5)
