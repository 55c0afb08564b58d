"""Process due jobs as workers would, inside the process of the test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from sqlalchemy import delete, func, text, update

from shared.foundation import config
from shared.foundation.stages import (
    EMBED,
    ENRICH,
    EXPIRE_WINDOW,
    INDEX,
    PARSE_DOCUMENT,
    PROMOTE,
    PUBLISH_DOCUMENT,
    REMOVE,
    SUMMARIZE,
    SUMMARIZE_SKILL,
    Stage,
)
from shared.infra.transaction import Connection
from shared.jobs import backlog
from shared.jobs.table import job, removal
from shared.platform.resources import Resources
from tests.conftest import Gateway, running_gateway
from workers.documents import process as document_processing
from workers.documents import publish as document_publishing
from workers.embedding import embed, index
from workers.enrichment import enrich, promote
from workers.runtime import drain as job_drain
from workers.runtime.drain import ClaimCounts, ProcessBatch
from workers.summary import expire_windows, summarize, summarize_skills
from workers.sweep import removals
from workers.sweep.jobs import dispatch_due_jobs

_LONG = timedelta(hours=1)
_PENDING: tuple[tuple[Stage, Callable[[Resources], Awaitable[ClaimCounts]]], ...] = (
    (ENRICH, enrich.enrich_pending),
    (PROMOTE, promote.promote_pending),
    (SUMMARIZE, summarize.summarize_pending),
    (SUMMARIZE_SKILL, summarize_skills.summarize_skills),
    (REMOVE, removals.finish_removals),
)
_BATCHES: tuple[tuple[Stage, ProcessBatch], ...] = (
    (PARSE_DOCUMENT, document_processing.process_batch),
    (INDEX, index.index_batch),
    (EMBED, embed.embed_batch),
    (PUBLISH_DOCUMENT, document_publishing.publish_batch),
    (EXPIRE_WINDOW, expire_windows.expire_windows),
)


async def drain(resources: Resources) -> None:
    """Claim and process jobs until none is due."""
    await resources.index_writer.close()
    while await _process_once(resources):
        await resources.index_writer.close()
    await dispatch_due_jobs(resources)


async def _process_once(resources: Resources) -> int:
    async with resources.postgres.across_tenants() as tx:
        due = await backlog.count_due(tx)
    counts = ClaimCounts()
    for stage, process_pending in _PENDING:
        if stage.name in due:
            counts += await process_pending(resources)
    for stage, process_batch in _BATCHES:
        if stage.name in due:
            counts += await job_drain.drain(resources, stage, process_batch)
    return counts.total()


async def _lock_jobs(tx: Connection) -> None:
    """Let no other transaction change jobs until this one ends; wait for those that have begun to.

    Row by row, this transaction could deadlock with a gateway's beside it: one that appends a turn locks the
    jobs of a session, of dreams and of mining one after the other.
    """
    await tx.execute(text("LOCK TABLE job IN EXCLUSIVE MODE"))


@asynccontextmanager
async def running_without_jobs(
    settings: config.Settings, tenant: str, *, has_trusted_judge: bool = True
) -> AsyncIterator[Gateway]:
    """Run a gateway for a test that processes jobs: no earlier one is due, and none of its own is left.

    `has_trusted_judge` is as for `running_gateway`.
    """
    async with running_gateway(settings, tenant, has_trusted_judge=has_trusted_judge) as gateway:
        await drop_all_jobs(gateway.resources)
        yield gateway
        await drop_jobs(gateway.resources, tenant)


async def drop_jobs(resources: Resources, tenant: str) -> None:
    """Delete what a test leaves due, which another test of the same database would process."""
    async with resources.postgres.for_tenant(tenant) as tx:
        await _lock_jobs(tx)
        await tx.execute(delete(job).where(job.c.tenant == tenant))


async def drop_all_jobs(resources: Resources) -> None:
    """Delete what earlier tests have left due in this database, before a test counts the calls of a model."""
    async with resources.postgres.across_tenants() as tx:
        await _lock_jobs(tx)
        await tx.execute(delete(job))


async def make_due(resources: Resources) -> None:
    """Make all delayed jobs due now, instead of waiting for them."""
    async with resources.postgres.across_tenants() as tx:
        await _lock_jobs(tx)
        await tx.execute(update(job).values(run_at=func.now()))
    async with resources.postgres.across_tenants() as tx:
        # As the owner of the tables, to whom no policy applies: the database has the tenants of many tests.
        await tx.execute(text("SET LOCAL ROLE NONE"))
        await tx.execute(update(removal).values(removed_at=removal.c.removed_at - _LONG))


async def process_all(resources: Resources) -> None:
    """Process all jobs, delayed ones included."""
    await resources.index_writer.close()
    await make_due(resources)
    await drain(resources)
