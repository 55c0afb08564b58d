"""What follows the commit of a transaction over records: always, in its order, and never without a commit."""

import asyncio
from dataclasses import replace
from typing import cast

import pytest
from sqlalchemy import delete, func, select

from shared.foundation import errors
from shared.foundation.stages import ENRICH, SUMMARIZE, MemoryState, RecordKind
from shared.infra.broker import TaskPublisher
from shared.jobs.table import job as job_table
from shared.memory.longterm import index_document, queries, save
from shared.memory.longterm.table import memory as memory_table
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction
from tests.agent import Agent
from tests.conftest import Gateway
from tests.wake_ups import WakeUps

TEXT = "The heron nests by the weir."


@pytest.fixture
def wake_ups() -> WakeUps:
    return WakeUps()


@pytest.fixture
def resources(gateway: Gateway, wake_ups: WakeUps) -> Resources:
    return replace(gateway.resources, publisher=cast(TaskPublisher, wake_ups))


@pytest.fixture
async def unfound(agent: Agent, gateway: Gateway) -> str:
    """The id of a memory that search does not find, because its points and jobs are gone."""
    memory = await agent.save(TEXT, enrich=False)
    async with gateway.resources.transaction(gateway.tenant) as tx:
        await tx.remove_points(RecordKind.MEMORY, {memory["id"]: 2})
    await gateway.resources.index_writer.close()
    assert await agent.search_contents("heron") == []
    return str(memory["id"])


async def index(tx: RecordTransaction, memory_id: str) -> None:
    [memory] = await queries.read(tx, [memory_id])
    await tx.execute(memory_table.update().where(memory_table.c.id == memory_id).values(version=3))
    await tx.index([index_document.document(memory.model_copy(update={"version": 3}))])


async def test_what_was_indexed_is_found_when_the_block_has_ended(
    agent: Agent, gateway: Gateway, unfound: str
) -> None:
    async with gateway.resources.transaction(gateway.tenant) as tx:
        await index(tx, unfound)
        assert await agent.search_contents("heron") == [], "only after the commit"
    assert await agent.search_contents("heron") == [TEXT]


async def test_after_an_exception_nothing_follows(
    agent: Agent, gateway: Gateway, resources: Resources, wake_ups: WakeUps, unfound: str
) -> None:
    results: list[str] = []

    async def follow() -> None:
        results.append("done")

    async def write() -> None:
        async with resources.transaction(gateway.tenant) as tx:
            await index(tx, unfound)
            tx.after_commit(follow)
            tx.wake(ENRICH)
            raise errors.Conflict("a rule of the caller's")

    with pytest.raises(errors.Conflict):
        await write()
    assert (results, wake_ups.sent) == ([], [])
    assert await agent.search_contents("heron") == []


async def test_points_come_first_then_the_rest_in_its_order_and_workers_are_woken_last(
    agent: Agent, gateway: Gateway, resources: Resources, wake_ups: WakeUps, unfound: str
) -> None:
    order: list[str] = []

    async def look() -> None:
        found = await agent.search_contents("heron")
        order.append(f"{len(found)} found, {len(wake_ups.sent)} woken")

    async def look_for_rows() -> None:
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as other:
            [memory] = await queries.read(other, [unfound])
            order.append(f"version {memory.version}")

    async with resources.transaction(gateway.tenant) as tx:
        tx.wake(ENRICH, 2)
        tx.after_commit(look)
        tx.after_commit(look_for_rows)
        await index(tx, unfound)
        tx.wake(ENRICH)
        tx.wake(SUMMARIZE)
    assert order == ["1 found, 0 woken", "version 3"]
    assert wake_ups.sent == [(ENRICH, 3), (SUMMARIZE, 1)]


async def test_what_can_not_be_done_now_stops_nothing_that_comes_after_it(
    gateway: Gateway, resources: Resources, wake_ups: WakeUps
) -> None:
    results: list[str] = []

    async def fail() -> None:
        raise errors.Unavailable("redis", "away")

    async def follow() -> None:
        results.append("done")

    async with resources.transaction(gateway.tenant) as tx:
        tx.after_commit(fail)
        tx.after_commit(follow)
        tx.wake(ENRICH)
    assert (results, wake_ups.sent) == (["done"], [(ENRICH, 1)])


async def test_a_caller_that_goes_away_stops_nothing_that_follows(
    gateway: Gateway, resources: Resources, wake_ups: WakeUps
) -> None:
    has_begun, may_end, has_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def follow() -> None:
        has_begun.set()
        await may_end.wait()
        has_ended.set()

    async def write() -> None:
        async with resources.transaction(gateway.tenant) as tx:
            tx.after_commit(follow)
            tx.wake(ENRICH)

    request = asyncio.create_task(write())
    await asyncio.wait_for(has_begun.wait(), 10)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert wake_ups.sent == [(ENRICH, 1)]
    closing = asyncio.create_task(resources.index_writer.close())
    may_end.set()
    await asyncio.wait_for(closing, 10)
    assert has_ended.is_set(), "a process that ends waits for it"


async def test_what_follows_can_use_the_connection_that_the_transaction_had(
    resources: Resources, tenant: str
) -> None:
    ids: list[int] = []

    async def read() -> None:
        async with resources.postgres.for_tenant(tenant) as other:  # the last that was given back
            ids.append(int(await other.scalar(select(func.pg_backend_pid())) or 0))

    async with resources.transaction(tenant) as tx:
        ids.append(int(await tx.scalar(select(func.pg_backend_pid())) or 0))
        tx.after_commit(read)
    assert ids[0] == ids[1]


async def test_a_pending_memory_wakes_enrichment_and_a_final_one_nobody(
    gateway: Gateway, resources: Resources, wake_ups: WakeUps, unfound: str
) -> None:
    async with resources.transaction(gateway.tenant) as tx:
        [memory] = await queries.read(tx, [unfound])
        await save.index(tx, [memory])
    assert wake_ups.sent == []
    async with resources.transaction(gateway.tenant) as tx:
        await save.index(tx, [memory.model_copy(update={"state": MemoryState.PENDING})])
    assert wake_ups.sent == [(ENRICH, 1)]
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(delete(job_table).where(job_table.c.tenant == gateway.tenant))
