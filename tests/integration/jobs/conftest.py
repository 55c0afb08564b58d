"""A database of its own: claims go across tenants, so nobody else's rows may be in it."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import pytest
from sqlalchemy import RowMapping, func, insert, select, text, update

from shared.foundation import config
from shared.foundation.stages import ENRICH, RecordKind, Stage
from shared.jobs import claim as job_claim
from shared.jobs import index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.jobs.table import job
from shared.platform.resources import Resources, open_resources
from shared.search.index import generations
from shared.search.index.generations import Generation

LEASE, ATTEMPTS = 60.0, 5


@dataclass(frozen=True)
class Queue:
    """The work of one fleet."""

    resources: Resources

    async def add(self, tenant: str, *refs: str, version: int = 1) -> None:
        """Make memories due for enrichment."""
        async with self.resources.postgres.for_tenant(tenant) as connection:
            await job_queries.enqueue(
                connection, tenant, RecordKind.MEMORY, ENRICH, dict.fromkeys(refs, version)
            )

    async def add_index(
        self, tenant: str, *refs: str, version: int = 1, generation: int | None = None
    ) -> list[Job]:
        """Make memories due for the index, as backfill when a generation is named."""
        versions = dict.fromkeys(refs, version)
        async with self.resources.postgres.for_tenant(tenant) as connection:
            return await index_jobs.enqueue_index_jobs(
                connection, tenant, RecordKind.MEMORY, versions, generation=generation
            )

    async def begin(self, model: str | None = None) -> Generation:
        """Begin a generation of memories, without a collection."""
        async with self.resources.postgres.across_tenants(exclusive=True) as connection:
            return await generations.create(connection, RecordKind.MEMORY, "p", model, 4 if model else None)

    async def claim(
        self, limit: int = 100, stage: Stage = ENRICH, *, lease: float = LEASE, attempts: int = ATTEMPTS
    ) -> list[Job]:
        """Claim as a worker does."""
        async with self.resources.postgres.across_tenants() as connection:
            return await job_claim.claim_batch(connection, stage, limit, lease, attempts)

    async def finish(self, *claims: Job) -> set[int]:
        """Finish as a worker does."""
        async with self.resources.postgres.across_tenants() as connection:
            return await job_queries.complete(connection, claims)

    async def rows(self) -> Sequence[RowMapping]:
        """Return every row, oldest first."""
        async with self.resources.postgres.across_tenants() as connection:
            return (await connection.execute(select(job).order_by(job.c.id))).mappings().all()

    async def row(self) -> RowMapping:
        """Return the only row."""
        (row,) = await self.rows()
        return row

    async def due_in(self) -> float:
        """Return in how many seconds the only row is due, by the database's clock."""
        async with self.resources.postgres.across_tenants() as connection:
            return float(
                await connection.scalar(select(func.extract("epoch", job.c.run_at - func.now()))) or 0
            )

    async def let_leases_end(self) -> None:
        """Bring every row forward to a second ago, as if its lease were over."""
        async with self.resources.postgres.across_tenants() as connection:
            await connection.execute(
                update(job).values(run_at=func.now() - func.make_interval(0, 0, 0, 0, 0, 0, 1))
            )

    async def pile(self, tenant: str, rows: int) -> None:
        """Make a backlog in one statement."""
        numbered = select(text(f"'{tenant}', 'memory', 'm' || n, 'enrichment', 'enrich', 1")).select_from(
            text(f"generate_series(1, {rows}) n")
        )
        columns = ["tenant", "kind", "record_id", "pipeline", "stage", "version"]
        async with self.resources.postgres.for_tenant(tenant) as connection:
            await connection.execute(insert(job).from_select(columns, numbered))
        async with self.resources.postgres.engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(text("RESET ROLE"))
            await connection.execute(text("ANALYZE job"))


@pytest.fixture
async def queue(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Queue]:
    """An empty queue."""
    async with open_resources(make_settings(apart=True)) as resources:
        yield Queue(resources)
