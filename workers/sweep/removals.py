"""Finish deletions: remove from Redis and Qdrant what requests have left there."""

from collections.abc import Sequence

from shared.foundation.stages import REMOVE
from shared.jobs.job import Job
from shared.lifecycle import erasure
from shared.platform.resources import Resources
from workers.runtime import drain as job_drain
from workers.runtime.drain import ClaimCounts


async def finish_removals(resources: Resources) -> ClaimCounts:
    """Go on with the deletions that are due. Return how many jobs were claimed, by tenant."""
    return await job_drain.drain(resources, REMOVE, _finish_all)


async def _finish_all(resources: Resources, jobs: Sequence[Job]) -> None:
    for job in jobs:
        failure = await erasure.resume(resources, job.tenant, job.record_id)
        if failure is not None:
            await job_drain.reschedule(resources, REMOVE, [job], failure)
