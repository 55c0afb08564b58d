"""Several jobs are locked in one order, wherever their rows lie, so transactions over them never deadlock."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import Select, func, select, text

from shared.foundation.stages import ENRICH, Pipeline, ReasonCode, RecordKind
from shared.infra.postgres import seconds
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.jobs.table import job
from tests.draining import drop_all_jobs, make_due
from tests.integration.jobs.conftest import JobQueue
from tests.locks import wait_until_blocked


async def _read_in_order_of_place(tx: Transaction) -> None:
    """Let the transaction read rows as they lie in the table, as it reads many: an index has an order."""
    await tx.execute(text("SET LOCAL enable_indexscan = off"))


async def cancel(queue: JobQueue) -> None:
    async with queue.resources.postgres.for_tenant("a") as tx:
        await _read_in_order_of_place(tx)
        ids = ["last", "first"]
        await job_queries.cancel(tx, RecordKind.MEMORY, ids, Pipeline.ENRICHMENT)


async def run_delayed_now(queue: JobQueue) -> None:
    async with queue.resources.postgres.for_tenant("a") as tx:
        await _read_in_order_of_place(tx)
        await job_queries.run_delayed_now(tx, ENRICH, ReasonCode.OVER_BUDGET)


CHANGES: dict[str, Callable[[JobQueue], Awaitable[None]]] = {
    "cancel": cancel,
    "run delayed now": run_delayed_now,
    "make due": lambda queue: make_due(queue.resources),
    "drop all jobs": lambda queue: drop_all_jobs(queue.resources),
}


def lock(record_id: str) -> Select[tuple[int]]:
    return select(job.c.id).where(job.c.record_id == record_id).with_for_update(skip_locked=True)


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_of_several_jobs_waits_for_the_first_without_holding_the_last(
    queue: JobQueue, name: str
) -> None:
    await queue.add("a", "last")
    await queue.add("a", "first")
    await queue.change(run_at=func.now() + seconds(60), reason_code=ReasonCode.OVER_BUDGET)
    async with queue.resources.postgres.across_tenants() as holder:
        await holder.execute(lock("first"))
        changing = asyncio.ensure_future(CHANGES[name](queue))
        await wait_until_blocked(holder, changing)
        is_free = (await holder.execute(lock("last"))).first() is not None
    await changing
    assert is_free
    assert all(row["run_at"] <= row["now"] for row in await _rows(queue))


@pytest.mark.parametrize("name", ["make due", "drop all jobs"])
async def test_a_helper_of_tests_waits_without_holding_any_job(queue: JobQueue, name: str) -> None:
    """A gateway beside it may lock jobs of several kinds in an order of its own."""
    await queue.add("a", "last")
    await queue.add("a", "first")
    async with queue.resources.postgres.across_tenants() as holder:
        await holder.execute(lock("last"))
        changing = asyncio.ensure_future(CHANGES[name](queue))
        await wait_until_blocked(holder, changing)
        assert (await holder.execute(lock("first"))).first() is not None
    await changing


async def _rows(queue: JobQueue) -> list[dict[str, Any]]:
    async with queue.resources.postgres.across_tenants() as tx:
        rows = await tx.execute(select(job.c.run_at, func.now().label("now")))
        return [dict(row) for row in rows.mappings()]
