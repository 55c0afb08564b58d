"""A job queue in a database of its own: claims cross tenants, so other tests' jobs must not be in it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import RowMapping, func, insert, select, text, update

from shared.foundation import config
from shared.foundation.stages import ENRICH, RecordKind, Stage
from shared.infra.postgres import seconds
from shared.jobs import claim as job_claim
from shared.jobs import index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.jobs.table import job
from shared.platform.resources import Resources, open_resources
from shared.search.index import generations
from shared.search.index.generations import Generation
from tests.databases import empty_tables

LEASE, ATTEMPTS = 60.0, 5


@dataclass(frozen=True)
class JobQueue:
    """The durable queue, with the operations of writers and workers."""

    resources: Resources

    async def add(self, tenant: str, *record_ids: str, version: int = 1) -> None:
        """Enqueue memories for enrichment."""
        async with self.resources.postgres.for_tenant(tenant) as tx:
            await job_queries.enqueue(
                tx, tenant, RecordKind.MEMORY, ENRICH, dict.fromkeys(record_ids, version)
            )

    async def add_index(
        self, tenant: str, *record_ids: str, version: int = 1, generation: int | None = None
    ) -> list[Job]:
        """Enqueue memories for the index; with a generation, as a backfill."""
        versions = dict.fromkeys(record_ids, version)
        async with self.resources.postgres.for_tenant(tenant) as tx:
            return await index_jobs.enqueue_index_jobs(
                tx, tenant, RecordKind.MEMORY, versions, generation=generation
            )

    async def create_generation(self, model: str | None = None) -> Generation:
        """Create a generation of memories, without a collection."""
        async with self.resources.postgres.across_tenants(exclusive=True) as tx:
            return await generations.create(tx, RecordKind.MEMORY, "p", model, 4 if model else None)

    async def claim(
        self, limit: int = 100, stage: Stage = ENRICH, *, lease: float = LEASE, attempts: int = ATTEMPTS
    ) -> list[Job]:
        """Claim jobs as a worker does."""
        async with self.resources.postgres.across_tenants() as tx:
            return await job_claim.claim_batch(tx, stage, limit, lease, attempts)

    async def complete(self, *jobs: Job) -> set[int]:
        """Complete jobs as a worker does; return the ids of those that were deleted."""
        async with self.resources.postgres.across_tenants() as tx:
            return await job_queries.complete(tx, jobs)

    async def job_rows(self) -> Sequence[RowMapping]:
        """Return the rows of all jobs, oldest first."""
        async with self.resources.postgres.across_tenants() as tx:
            return (await tx.execute(select(job).order_by(job.c.id))).mappings().all()

    async def only_row(self) -> RowMapping:
        """Return the row of the only job."""
        (row,) = await self.job_rows()
        return row

    async def seconds_until_due(self) -> float:
        """Return the seconds until the only job is due, by the time of the database."""
        async with self.resources.postgres.across_tenants() as tx:
            return float(await tx.scalar(select(func.extract("epoch", job.c.run_at - func.now()))) or 0)

    async def end_leases(self) -> None:
        """Make every job due since a second ago, as if its lease had ended."""
        async with self.resources.postgres.across_tenants() as tx:
            await tx.execute(update(job).values(run_at=func.now() - seconds(1)))

    async def change(self, **values: Any) -> None:
        """Set columns of every job."""
        async with self.resources.postgres.across_tenants() as tx:
            await tx.execute(update(job).values(values))

    async def wait_until_blocked(self, other: "asyncio.Task[Any] | Awaitable[Any]") -> None:
        """Wait until a task waits for a lock, or has ended."""
        is_waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        async with asyncio.timeout(30):
            while not asyncio.ensure_future(other).done():
                async with self.resources.postgres.across_tenants() as tx:
                    if await tx.scalar(is_waiting):
                        return
                await asyncio.sleep(0.01)

    async def add_backlog(self, tenant: str, jobs: int) -> None:
        """Enqueue many memories for enrichment with one statement."""
        new_rows = select(text(f"'{tenant}', 'memory', 'm' || n, 'enrichment', 'enrich', 1")).select_from(
            text(f"generate_series(1, {jobs}) n")
        )
        columns = ["tenant", "kind", "record_id", "pipeline", "stage", "version"]
        async with self.resources.postgres.for_tenant(tenant) as tx:
            await tx.execute(insert(job).from_select(columns, new_rows))
        async with self.resources.postgres.engine.connect() as tx:
            await tx.execution_options(isolation_level="AUTOCOMMIT")
            await tx.execute(text("RESET ROLE"))
            await tx.execute(text("ANALYZE job"))


@pytest.fixture
async def queue(
    make_settings: Callable[..., config.Settings], database: dict[str, str]
) -> AsyncIterator[JobQueue]:
    """An empty queue, for no index."""
    await empty_tables(database["postgres_url"], "index_generation")
    async with open_resources(make_settings(**database)) as resources:
        yield JobQueue(resources)
