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
from shared.jobs.job import Claim
from shared.platform.resources import Resources
from workers.runtime import tracing

Batch = Callable[[Resources, Sequence[Claim]], Awaitable[None]]
log = structlog.get_logger()
_TOLD = 10
"""Tenants that a task names: who has the backlog is worth seeing, a list of thousands is not."""

stopping = threading.Event()
"""Set when the process has been told to end: what it holds it may finish, but it claims no more."""


class Worked(Counter[str]):
    """How many rows of which tenant a task claimed."""

    def add(self, claims: Sequence[Claim]) -> None:
        """Count these claims."""
        self.update(claim.tenant for claim in claims)

    def told(self) -> dict[str, Any]:
        """Return it as Flower shows it: all rows, and the tenants with the most of them."""
        return {"claimed": self.total(), "tenants": dict(self.most_common(_TOLD))}


async def drain(resources: Resources, stage: Stage, do: Batch) -> Worked:
    """Work off what is due in a stage, batch by batch; return what was claimed.

    It stops when nothing is due, or at half a lease: whoever is rung next goes on.
    """
    settings, worked = resources.settings, Worked()
    enough = time.monotonic() + settings.lease / 2
    while time.monotonic() < enough and not stopping.is_set():
        async with resources.postgres.fleet() as connection:
            claims = await job_claim.claim(
                connection, stage, stage.batch, settings.lease, settings.work_attempts
            )
        if not claims:
            return worked
        worked.add(claims)
        await within_lease(resources, stage, do, claims)
    resources.bell.ring(stage)
    return worked


async def within_lease(resources: Resources, stage: Stage, do: Batch, claims: Sequence[Claim]) -> None:
    """Stop a batch before its lease ends: what others may claim must not be in our hands still."""
    try:
        async with asyncio.timeout(resources.settings.lease * 0.8):
            await _count(resources, stage, claims)
            with tracing.rows(stage, claims):
                await do(resources, claims)
    except TimeoutError:
        await put_off(resources, stage, claims, errors.Unavailable(stage.name, "it took too long"))
    except asyncio.CancelledError:
        async with resources.postgres.fleet() as connection:
            await job_queries.give_back(connection, claims)
        raise


async def _count(resources: Resources, stage: Stage, claims: Sequence[Claim]) -> None:
    again = sum(claim.attempts > 1 for claim in claims)
    await fleet_counters.tell(
        resources.postgres,
        {"work_claims": {stage.name: len(claims)}, "work_retries": {stage.name: again}},
    )


async def put_off(
    resources: Resources,
    stage: Stage,
    claims: Sequence[Claim],
    error: errors.Unavailable,
    reason_code: ReasonCode = ReasonCode.UNAVAILABLE,
) -> None:
    """Give claims back, due again after a pause, for a failure of the other side that may pass."""
    log.warning("put_off", stage=stage.name, rows=len(claims), reason=str(error))
    async with resources.postgres.fleet() as connection:
        for claim in sorted(claims, key=attrgetter("tenant", "kind", "ref", "generation")):
            pause = backoff(resources, claim.attempts, error.retry_after)
            await job_queries.postpone(
                connection,
                claim,
                str(error),
                pause,
                reason_code=reason_code,
                refund=not stage.outage_counts,
            )


def backoff(resources: Resources, attempts: int, retry_after: float | None = None) -> float:
    """Return seconds to wait: doubling with full jitter, at least what the other side asked for."""
    settings = resources.settings
    ceiling = min(settings.work_backoff_max, settings.work_backoff * 2 ** min(attempts, 16))
    return max(retry_after or 0.0, random.uniform(settings.work_backoff / 2, ceiling))  # noqa: S311
