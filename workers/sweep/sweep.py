"""One sweep: a step for each state of the world that may need mending. All are safe to repeat.

A step whose store is away is left for the next sweep and stops none of the others.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

import structlog

from shared.foundation import errors
from shared.jobs import counters as fleet_counters
from shared.jobs import periodic
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources
from shared.platform.spend import budget_admin, reserve
from workers.sweep import index_drift, jobs, retention

log = structlog.get_logger()


@dataclass
class Counts:
    """What a sweep mended, by kind."""

    generations_begun: int = 0
    exhausted_jobs: int = 0
    expired_sessions: int = 0
    expired_working_points: int = 0
    orphan_points: int = 0
    missing_points: int = 0
    purged_archived: int = 0
    expired_turns: int = 0
    expired_history: int = 0
    expired_responses: int = 0
    expired_embeddings: int = 0
    expired_signals: int = 0
    expired_dreams: int = 0
    expired_reservations: int = 0
    rolled_over_budgets: int = 0


Step = Callable[[Resources, Counts], Awaitable[None]]


# Of the time between rings: a ring that comes a little early must not be taken for another clock's.
_WINDOW = 0.9


async def sweep_if_due(resources: Resources) -> Counts:
    """Sweep, unless another clock's ring for the same window has been followed; count what was mended."""
    async with resources.postgres.across_tenants() as connection:
        first = await periodic.claim_run(connection, "sweep", resources.settings.sweep_interval * _WINDOW)
    return await sweep_once(resources) if first else Counts()


async def sweep_once(resources: Resources) -> Counts:
    """Do every step once and count what was mended."""
    counts = Counts()
    for step in (_generations, _abandoned, _spend, _retention, _desk_points, _strays):
        try:
            await step(resources, counts)
        except errors.LociError as error:
            log.warning("sweep_step_skipped", step=step.__name__.strip("_"), reason=str(error))
    mended = {name: number for name, number in asdict(counts).items() if number}
    if mended:
        log.info("sweep_finished", **mended)
        async with resources.postgres.across_tenants() as connection:
            await fleet_counters.increment(connection, "sweep_repairs", mended)
    return counts


async def _generations(resources: Resources, counts: Counts) -> None:
    """The configured model has changed, or a first start found the endpoint away."""
    counts.generations_begun = len(await rebuild_index.ensure_generations(resources))
    await rebuild_index.create_collections(resources)


async def _abandoned(resources: Resources, counts: Counts) -> None:
    """A row's worker died with it as often as it may: it would take the next one down too."""
    counts.exhausted_jobs = await jobs.fail_exhausted_jobs(resources)


async def _retention(resources: Resources, counts: Counts) -> None:
    """Rows have outlived what the settings allow."""
    async with resources.postgres.across_tenants() as connection:
        tenants = await auth_queries.list_tenants(connection)
    for tenant in tenants:
        counts.expired_sessions += await retention.delete_expired_sessions(resources, tenant)
        counts.purged_archived += await retention.purge_archived(resources, tenant)
        counts.expired_turns += await retention.delete_old_turns(resources, tenant)
        rows = await retention.delete_old_rows(resources, tenant)
        counts.expired_history += rows["history"]
        counts.expired_responses += rows["answers"]
        counts.expired_embeddings += rows["vectors"]
        counts.expired_signals += rows["signals"]
        counts.expired_dreams += rows["dreams"]


async def _spend(resources: Resources, counts: Counts) -> None:
    """Reservations whose worker died with them hold money back; budgets' windows have turned unseen."""
    async with resources.postgres.across_tenants() as connection:
        tenants = await auth_queries.list_tenants(connection)
    for tenant in tenants:
        counts.expired_reservations += await reserve.settle_expired(resources, tenant)
        counts.rolled_over_budgets += await budget_admin.roll_over(resources, tenant)


async def _desk_points(resources: Resources, counts: Counts) -> None:
    """Desk entries ended by their own time to live; Redis forgot them, the index did not."""
    counts.expired_working_points = await index_drift.delete_expired_working_points(resources)


async def _strays(resources: Resources, counts: Counts) -> None:
    """Points without a record, or of another version than the record's; records without their point."""
    counts.orphan_points, counts.missing_points = await index_drift.reconcile(resources)
