"""Start scheduled runs over scopes that were active some time ago and are quiet now.

Sessions are evaluated by runs of their own, because they are idle at other times than their scope is due.
"""

from collections.abc import Sequence

from shared.conversation.turns import queries as turn_queries
from shared.dreams.runs import start
from shared.foundation.stages import DREAM_START, Pipeline, ReasonCode
from shared.jobs import dream_schedule, removals
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.resources import Resources
from workers.dream import due_evaluations
from workers.passes import dispatch
from workers.runtime import drain as job_drain
from workers.runtime.drain import ClaimCounts

_SCHEDULE = "schedule"
"""The actor of runs that nobody asked for."""


async def start_due_runs(resources: Resources) -> ClaimCounts:
    """Start a run over each scope that is due. Return how many jobs were claimed, by tenant."""
    return await job_drain.drain(resources, DREAM_START, _start_all)


async def _start_all(resources: Resources, jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.pipeline is Pipeline.EVALUATION:
            await due_evaluations.start_or_reschedule(resources, job)
        else:
            await _start_or_reschedule(resources, job)
    await dispatch.dispatch_next_passes(resources)


async def _start_or_reschedule(resources: Resources, job: Job) -> None:
    """Start a run over the scope of a job, or reschedule the job while the scope is active."""
    settings = resources.settings
    scope = dream_schedule.scope_from_record_id(job.tenant, job.record_id)
    async with resources.postgres.for_tenant(job.tenant) as tx:
        await removals.delay_erasures(tx, scope)
        if await turn_queries.has_turn_within(tx, scope, settings.dream_quiet_period):
            await job_queries.reschedule(
                tx,
                job,
                "the scope is active",
                settings.dream_quiet_period,
                reason_code=ReasonCode.NOT_READY,
                refund=True,
            )
            return
        if job.id not in await job_queries.complete(tx, [job]):
            return
        run = await start.start_run(tx, settings, scope, _SCHEDULE, ())
        if run is None:  # a run that was started on demand has not ended: this one is due after it
            await dream_schedule.schedule_dream(tx, settings, scope)
