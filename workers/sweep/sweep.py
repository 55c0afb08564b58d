"""Run one sweep: a list of steps that repair, expire or settle something. Every step is safe to repeat.

A step that fails because a database is unavailable is skipped until the next sweep. The other steps run.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

import structlog

from shared.foundation import errors
from shared.jobs import counters as fleet_counters
from shared.jobs import model_pauses, periodic
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.memory.playbooks import settle
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources
from shared.platform.spend import budget_admin, reserve
from workers.sweep import (
    floors,
    index_drift,
    jobs,
    judge_calibration,
    missing_summaries,
    oversized,
    retention,
    waiting_proposals,
)

log = structlog.get_logger()


@dataclass(slots=True)
class Counts:
    """The numbers of repairs of a sweep. The names are values of the metric label `kind`."""

    generations_begun: int = 0
    exhausted_jobs: int = 0
    expired_sessions: int = 0
    expired_working_points: int = 0
    forgotten_namespaces: int = 0
    orphan_points: int = 0
    missing_points: int = 0
    purged_archived: int = 0
    expired_memories: int = 0
    expired_turns: int = 0
    expired_summaries: int = 0
    expired_history: int = 0
    expired_responses: int = 0
    expired_embeddings: int = 0
    expired_signals: int = 0
    expired_dreams: int = 0
    expired_graph: int = 0
    expired_skill_uses: int = 0
    expired_proposals: int = 0
    expired_erasures: int = 0
    expired_reservations: int = 0
    rolled_over_budgets: int = 0
    learnt_floors: int = 0
    oversized_memories: int = 0
    missing_skill_summaries: int = 0
    settled_playbooks: int = 0

    def add_expired(self, kind: str, number: int) -> None:
        """Count what retention has deleted of a kind. Raises AttributeError for one without a count here."""
        name = f"expired_{kind}"
        setattr(self, name, getattr(self, name) + number)


Step = Callable[[Resources, Counts], Awaitable[None]]


# Part of the interval between triggers: a trigger that comes a little early must not count as a second one.
_MIN_INTERVAL_RATIO = 0.9


async def sweep_if_due(resources: Resources) -> Counts:
    """Sweep unless another trigger within the interval has started a sweep, and return the counts.

    Two Celery beat processes may run at once, for example during a rolling upgrade.
    """
    interval = resources.settings.sweep_interval * _MIN_INTERVAL_RATIO
    async with resources.postgres.across_tenants() as tx:
        is_due = await periodic.claim_run(tx, "sweep", interval)
    return await sweep_once(resources) if is_due else Counts()


async def sweep_once(resources: Resources) -> Counts:
    """Run every step once, and return the counts of what was repaired."""
    counts = Counts()
    for step in _STEPS:
        try:
            await step(resources, counts)
        except errors.LociError as error:
            log.warning("sweep_step_skipped", step=step.__name__.strip("_"), reason=str(error))
    repairs = {name: number for name, number in asdict(counts).items() if number}
    if repairs:
        log.info("sweep_finished", **repairs)
        async with resources.postgres.across_tenants() as tx:
            await fleet_counters.increment(tx, "sweep_repairs", repairs)
    return counts


async def _ensure_generations(resources: Resources, counts: Counts) -> None:
    """Create missing index generations: the model was changed, or its endpoint failed at the first start."""
    counts.generations_begun = len(await rebuild_index.ensure_generations(resources))
    await rebuild_index.create_collections(resources)


async def _fail_exhausted_jobs(resources: Resources, counts: Counts) -> None:
    """End the jobs whose worker died at every attempt: they would end the next worker, too."""
    counts.exhausted_jobs = await jobs.fail_exhausted_jobs(resources)


async def _end_stale_pauses(resources: Resources, _: Counts) -> None:
    """Forget pauses that nobody has probed for long: the model is configured no longer, or nothing waits."""
    async with resources.postgres.across_tenants() as tx:
        await model_pauses.delete_stale(tx, 10 * resources.settings.model_probe_interval)


async def _wake_for_judge(resources: Resources, _: Counts) -> None:
    """Let a worker measure the judge if that is due, and ask it about what waits since it is trusted."""
    await judge_calibration.wake_if_due(resources)
    await waiting_proposals.wake_if_due(resources)


async def _settle_spend(resources: Resources, counts: Counts) -> None:
    """Settle the reservations of dead workers, which block money, and roll over budgets without charges."""
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    for tenant in tenants:
        counts.expired_reservations += await reserve.settle_expired(resources, tenant)
        counts.rolled_over_budgets += await budget_admin.roll_over(resources, tenant)


async def _apply_retention(resources: Resources, counts: Counts) -> None:
    """Delete what is past its retention period."""
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    for tenant in tenants:
        counts.expired_sessions += await retention.delete_expired_sessions(resources, tenant)
        counts.expired_memories += await retention.delete_expired_memories(resources, tenant)
        counts.purged_archived += await retention.purge_archived(resources, tenant)
        counts.expired_turns += await retention.delete_old_turns(resources, tenant)
        for kind, number in (await retention.delete_old_rows(resources, tenant)).items():
            counts.add_expired(kind, number)


async def _delete_expired_working_points(resources: Resources, counts: Counts) -> None:
    """Delete the points of working-memory entries that Redis has expired: the index does not expire them."""
    counts.expired_working_points = await index_drift.delete_expired_working_points(resources)


async def _forget_empty_namespaces(resources: Resources, counts: Counts) -> None:
    """Forget who owned working memory that is empty and that no session writes to any more."""
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    for tenant in tenants:
        counts.forgotten_namespaces += await retention.forget_empty_namespaces(resources, tenant)


async def _reconcile_index(resources: Resources, counts: Counts) -> None:
    """Repair index drift: points without a record of their version, and records without a point."""
    counts.orphan_points, counts.missing_points = await index_drift.reconcile(resources)


async def _learn_floors(resources: Resources, counts: Counts) -> None:
    """Learn from which cosine on two records are related, in generations that have grown."""
    counts.learnt_floors = await floors.learn_floors(resources)


async def _enqueue_oversized(resources: Resources, counts: Counts) -> None:
    """Make long memories due for compaction."""
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    for tenant in tenants:
        counts.oversized_memories += await oversized.enqueue_oversized(resources, tenant)


async def _enqueue_missing_summaries(resources: Resources, counts: Counts) -> None:
    """Make the summaries due of skills that came without one while there was no model, or by an import."""
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    for tenant in tenants:
        counts.missing_skill_summaries += await missing_summaries.enqueue_missing_summaries(resources, tenant)


async def _settle_playbooks(resources: Resources, counts: Counts) -> None:
    """Promote the playbooks whose users went on, though nobody reads them: patterns count them."""
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    for tenant in tenants:
        counts.settled_playbooks += await settle.settle_tenant(resources, tenant)


_STEPS: tuple[Step, ...] = (
    _ensure_generations,
    _fail_exhausted_jobs,
    _end_stale_pauses,
    _wake_for_judge,
    _settle_spend,
    _apply_retention,
    _delete_expired_working_points,
    _forget_empty_namespaces,
    _reconcile_index,
    _learn_floors,
    _enqueue_oversized,
    _enqueue_missing_summaries,
    _settle_playbooks,
)
