"""Drain a stage in batches: claim jobs, process them, store the outcome, until nothing is due.

`concurrent_drain` is for stages in which every job is a call of its own. A job that fails because of
another service is due again after a growing, jittered delay, which respects that service's Retry-After.
A job that fails because of its own content ends in a state that names the reason.
"""

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from shared.foundation import errors
from shared.foundation.stages import (
    EMBED,
    ENRICH,
    INDEX,
    PROMOTE,
    REFUSALS_OF_MODEL,
    SUMMARIZE,
    SUMMARIZE_SKILL,
    ReasonCode,
    Stage,
)
from shared.infra.model_endpoint import ModelIdentity
from shared.jobs import claim as job_claim
from shared.jobs import counters as fleet_counters
from shared.jobs import model_guard, status
from shared.jobs import queries as job_queries
from shared.jobs.job import LOCK_ORDER, Job
from shared.platform.resources import Resources
from workers.runtime import tracing
from workers.runtime.startup import MAX_PART_OF_LEASE

ProcessBatch = Callable[[Resources, Sequence[Job]], Awaitable[None]]
GiveUp = Callable[[Resources, Job, str], Awaitable[None]]
"""End a job that did not succeed, with the reason."""
log = structlog.get_logger()
_MAX_TENANTS_SHOWN = 10
"""A task's result names only the tenants with the most jobs, because a list of thousands is unreadable."""

stopping = threading.Event()
"""Set when the process is asked to end: it may finish the jobs that it has claimed, and claims no more."""


class ClaimCounts(Counter[str]):
    """The numbers of jobs that a task claimed, by tenant."""

    def add(self, jobs: Sequence[Job]) -> None:
        """Count claimed jobs."""
        self.update(job.tenant for job in jobs)

    def to_result(self) -> dict[str, Any]:
        """Return the task's result for Flower: the number of jobs, and the tenants with most of them."""
        return {"claimed": self.total(), "tenants": dict(self.most_common(_MAX_TENANTS_SHOWN))}


async def drain(resources: Resources, stage: Stage, process: ProcessBatch) -> ClaimCounts:
    """Process the due jobs of a stage batch by batch, and return the counts of what was claimed.

    Stop when nothing is due, or after half a lease; then send a wake-up, so that another task goes on.
    """
    settings, counts = resources.settings, ClaimCounts()
    deadline = time.monotonic() + settings.job_lease / 2
    while time.monotonic() < deadline and not stopping.is_set():
        jobs = await claim(resources, stage, stage.batch_size)
        if not jobs:
            return counts
        counts.add(jobs)
        await process_within_lease(resources, stage, process, jobs)
    resources.publisher.wake(stage)
    return counts


async def claim(resources: Resources, stage: Stage, limit: int) -> list[Job]:
    """Claim up to `limit` due jobs: none while the stage is paused, and one if its model is to be probed."""
    settings, identity = resources.settings, _model_of(resources, stage)
    name = status.NAMES.get(stage.name, stage.name)
    async with resources.postgres.across_tenants() as tx:
        limit = await model_guard.claim_limit(tx, name, identity, limit)
        if limit == 0:
            return []
        return await job_claim.claim_batch(tx, stage, limit, settings.job_lease, settings.job_max_attempts)


def _model_of(resources: Resources, stage: Stage) -> ModelIdentity | None:
    """Return the model that every job of a stage calls."""
    if stage in {ENRICH, PROMOTE, SUMMARIZE, SUMMARIZE_SKILL} and resources.language_model is not None:
        return resources.language_model.identity
    return resources.embedder.identity if stage is EMBED and resources.embedder is not None else None


async def process_within_lease(
    resources: Resources, stage: Stage, process: ProcessBatch, jobs: Sequence[Job]
) -> None:
    """Process claimed jobs, and cancel after 80 % of the lease.

    Another worker may claim the jobs when the lease ends. A timeout reschedules them; a cancellation
    releases them at once.
    """
    try:
        async with asyncio.timeout(resources.settings.job_lease * MAX_PART_OF_LEASE):
            await _count_claims(resources, stage, jobs)
            with tracing.trace_jobs(stage, jobs):
                await process(resources, jobs)
    except TimeoutError:
        unavailable = errors.Unavailable(stage.name, "it took too long")
        await reschedule(resources, stage, jobs, unavailable, uses_attempt=True)
    except asyncio.CancelledError:
        async with resources.postgres.across_tenants() as tx:
            await job_queries.release(tx, jobs)
        raise


async def _count_claims(resources: Resources, stage: Stage, jobs: Sequence[Job]) -> None:
    retry_count = sum(job.attempts > 1 for job in jobs)
    await fleet_counters.increment_detached(
        resources.postgres,
        {"job_claims": {stage.name: len(jobs)}, "job_retries": {stage.name: retry_count}},
    )


async def reschedule(
    resources: Resources,
    stage: Stage,
    jobs: Sequence[Job],
    error: errors.Unavailable,
    reason_code: ReasonCode = ReasonCode.UNAVAILABLE,
    *,
    uses_attempt: bool = False,
) -> None:
    """Make jobs due again after a delay, because another service failed in a way that may pass.

    No attempt is used for that, so that an outage never ends a job. Jobs of a paused stage stay due: they are
    claimed when the pause ends. A job that is refused again although the model answered others in between may
    be what is refused, and uses one; otherwise it would pause its stage for ever.
    """
    log.warning("jobs_rescheduled", stage=stage.name, rows=len(jobs), reason=str(error))
    is_refused = isinstance(error, errors.ModelRefused)
    async with resources.postgres.across_tenants() as tx:
        for job in sorted(jobs, key=LOCK_ORDER):
            is_claimed_when_resumed = is_refused and _model_of(resources, stage) is not None
            delay = 0.0 if is_claimed_when_resumed else _delay(resources, stage, job, error.retry_after)
            await job_queries.reschedule(
                tx,
                job,
                str(error),
                delay,
                reason_code=error.reason_code if isinstance(error, errors.ModelRefused) else reason_code,
                refund=not (uses_attempt or uses_an_attempt(job, error)),
            )


async def retry_later(
    resources: Resources, stage: Stage, job: Job, error: errors.Unavailable, give_up: GiveUp
) -> None:
    """Make a job due again as `reschedule` does, or give it up if this was its last attempt."""
    if uses_an_attempt(job, error) and job.attempts >= resources.settings.job_max_attempts:
        await give_up(resources, job, str(error))
    else:
        await reschedule(resources, stage, [job], error)


async def wait_for_budget(resources: Resources, job: Job, error: errors.OverBudget) -> None:
    """Make a job due again in the next window of the budget that is used up. No attempt is used for that."""
    async with resources.postgres.across_tenants() as tx:
        await job_queries.reschedule(
            tx, job, str(error), error.retry_after, reason_code=ReasonCode.OVER_BUDGET, refund=True
        )


def uses_an_attempt(job: Job, error: errors.Unavailable) -> bool:
    """Tell whether a job may be to blame for what it met, because the model answered others meanwhile."""
    if error.uses_attempt:
        return True
    if not isinstance(error, errors.ModelRefused) or error.reason_code in REFUSALS_OF_MODEL:
        return False
    return error.begins_pause and job.reason_code == error.reason_code


def _delay(resources: Resources, stage: Stage, job: Job, retry_after: float | None) -> float:
    if stage is INDEX:
        return retry_delay(resources, job.attempts, retry_after)
    longest_delay = min(_MAX_OUTAGE_DELAY, resources.settings.job_backoff_max)
    outage_delay = _outages.delay(stage.name, longest_delay)
    return max(retry_after or 0.0, retry_delay(resources, job.attempts), outage_delay)


_MAX_OUTAGE_DELAY = 60.0


class _Outages:
    """How long the models of stages have been away, as far as this process knows.

    Attempts don't grow in an outage, so they can't tell how long to wait. The delay is up to as long as the
    outage has lasted.
    """

    def __init__(self) -> None:
        self._spans: dict[str, tuple[float, float]] = {}

    def delay(self, stage: str, longest_delay: float) -> float:
        """Note a failure now, and return the seconds to wait."""
        now = time.monotonic()
        began, last = self._spans.get(stage, (now, now))
        if now - last > 2 * longest_delay:
            began = now
        self._spans[stage] = (began, now)
        return random.uniform(0, min(now - began, longest_delay))  # noqa: S311


_outages = _Outages()


def retry_delay(resources: Resources, attempts: int, retry_after: float | None = None) -> float:
    """Return the seconds until the next attempt.

    They double with every attempt, with full jitter, and are at least what the other service asked for.
    """
    settings = resources.settings
    ceiling = min(settings.job_backoff_max, settings.job_backoff * 2 ** min(attempts, 16))
    return max(retry_after or 0.0, random.uniform(settings.job_backoff / 2, ceiling))  # noqa: S311
