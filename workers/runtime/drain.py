"""Claim, work, record: the loop of the queues that work in batches. `concurrent_drain` has the other one.

A task empties its stage: it claims a batch, works on it, and goes on until nothing is due. A
claim that fails by the other side's fault is due again after a growing, jittered pause, the
other side's own Retry-After respected; one that fails by its own comes to an end that says why.
"""

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any

import structlog

from shared.foundation import errors
from shared.foundation.stages import ReasonCode, Stage
from shared.jobs import claim as job_claim
from shared.jobs import counters as fleet_counters
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.resources import Resources
from workers.runtime import tracing

ProcessBatch = Callable[[Resources, Sequence[Job]], Awaitable[None]]
log = structlog.get_logger()
_TOLD = 10
"""Tenants that a task names: who has the backlog is worth seeing, a list of thousands is not."""

stopping = threading.Event()
"""Set when the process has been told to end: what it holds it may finish, but it claims no more."""


class ClaimCounts(Counter[str]):
    """How many rows of which tenant a task claimed."""

    def add(self, claims: Sequence[Job]) -> None:
        """Count these claims."""
        self.update(claim.tenant for claim in claims)

    def to_result(self) -> dict[str, Any]:
        """Return it as Flower shows it: all rows, and the tenants with the most of them."""
        return {"claimed": self.total(), "tenants": dict(self.most_common(_TOLD))}


async def drain(resources: Resources, stage: Stage, do: ProcessBatch) -> ClaimCounts:
    """Work off what is due in a stage, batch by batch; return what was claimed.

    It stops when nothing is due, or at half a lease: whoever is rung next goes on.
    """
    settings, worked = resources.settings, ClaimCounts()
    enough = time.monotonic() + settings.job_lease / 2
    while time.monotonic() < enough and not stopping.is_set():
        async with resources.postgres.across_tenants() as connection:
            claims = await job_claim.claim_batch(
                connection, stage, stage.batch_size, settings.job_lease, settings.job_max_attempts
            )
        if not claims:
            return worked
        worked.add(claims)
        await process_within_lease(resources, stage, do, claims)
    resources.publisher.wake(stage)
    return worked


async def process_within_lease(
    resources: Resources, stage: Stage, do: ProcessBatch, claims: Sequence[Job]
) -> None:
    """Stop a batch before its lease ends: what others may claim must not be in our hands still."""
    try:
        async with asyncio.timeout(resources.settings.job_lease * 0.8):
            await _count(resources, stage, claims)
            with tracing.trace_jobs(stage, claims):
                await do(resources, claims)
    except TimeoutError:
        await reschedule(resources, stage, claims, errors.Unavailable(stage.name, "it took too long"))
    except asyncio.CancelledError:
        async with resources.postgres.across_tenants() as connection:
            await job_queries.release(connection, claims)
        raise


async def _count(resources: Resources, stage: Stage, claims: Sequence[Job]) -> None:
    again = sum(claim.attempts > 1 for claim in claims)
    await fleet_counters.increment_detached(
        resources.postgres,
        {"job_claims": {stage.name: len(claims)}, "job_retries": {stage.name: again}},
    )


async def reschedule(
    resources: Resources,
    stage: Stage,
    claims: Sequence[Job],
    error: errors.Unavailable,
    reason_code: ReasonCode = ReasonCode.UNAVAILABLE,
) -> None:
    """Give claims back, due again after a pause, for a failure of the other side that may pass."""
    log.warning("jobs_rescheduled", stage=stage.name, rows=len(claims), reason=str(error))
    async with resources.postgres.across_tenants() as connection:
        for claim in sorted(claims, key=attrgetter("tenant", "kind", "record_id", "generation")):
            pause = retry_delay(resources, claim.attempts, error.retry_after)
            await job_queries.reschedule(
                connection,
                claim,
                str(error),
                pause,
                reason_code=reason_code,
                refund=not stage.outage_uses_attempt,
            )


def retry_delay(resources: Resources, attempts: int, retry_after: float | None = None) -> float:
    """Return seconds to wait: doubling with full jitter, at least what the other side asked for."""
    settings = resources.settings
    ceiling = min(settings.job_backoff_max, settings.job_backoff * 2 ** min(attempts, 16))
    return max(retry_after or 0.0, random.uniform(settings.job_backoff / 2, ceiling))  # noqa: S311
