"""Repair the job queue: send wake-ups for due jobs, and end jobs whose attempts are used up.

Wake-ups may be lost, and delayed jobs become due without one, so the wake-ups are repeated.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from shared.foundation import errors, stages
from shared.foundation.stages import MemoryState, Pipeline, RecordKind
from shared.jobs import backlog, dead_jobs, removals
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.resources import Resources
from workers.documents import outcome as document_outcome
from workers.enrichment import enrich, promote
from workers.passes import dispatch, run_pass
from workers.summary import summarize, summarize_skills

_MAX_JOBS = 500
_REMOVAL_DELAY_SECONDS = 60.0
_REASON = "its worker ended {attempts} times while working on it"


async def dispatch_due_jobs(resources: Resources) -> dict[str, int]:
    """Send a wake-up for each stage with due jobs, and promote index generations.

    Return the number of due jobs by stage.
    """
    await dispatch.resume_refused_passes(resources)
    async with resources.postgres.across_tenants() as tx:
        due_jobs = await backlog.count_due(tx)
    pass_stages = {stage.name for stage in stages.PASS_STAGES}
    if pass_stages & due_jobs.keys():  # their tasks are sent here, each once
        await dispatch.dispatch_next_passes(resources)
    for stage_name in due_jobs.keys() - pass_stages:
        resources.publisher.wake(stages.STAGES[stage_name], due_jobs[stage_name])
    # While Qdrant is unavailable, generations that were promoted stay so, and the next run tries the rest.
    with suppress(errors.Unavailable):
        await rebuild_index.promote_ready(resources)
    return due_jobs


async def fail_exhausted_jobs(resources: Resources) -> int:
    """End exhausted jobs, whose last attempt never came back, in a state that names the reason.

    Return how many jobs were ended.
    """
    max_attempts = resources.settings.job_max_attempts
    async with resources.postgres.across_tenants() as tx:
        jobs = await backlog.list_exhausted(tx, max_attempts, _MAX_JOBS)
        for job in jobs:
            if job.pipeline is Pipeline.INDEX:
                await dead_jobs.mark_dead(tx, job, _REASON.format(attempts=job.attempts))
            if job.pipeline is Pipeline.REMOVAL:  # nobody gives up what is to be erased
                await removals.schedule(tx, job.tenant, job.record_id, _REMOVAL_DELAY_SECONDS)
            # The next activity in the scope, or the next turn, makes it due again.
            if job.kind is RecordKind.DREAM_SCOPE or job.pipeline is Pipeline.IDLE:
                await job_queries.complete(tx, [job])
    for job in jobs:
        if job.pipeline in _GIVE_UP:
            await _GIVE_UP[job.pipeline](resources, job, _REASON.format(attempts=job.attempts))
        if job.kind is RecordKind.DREAM_RUN:
            await run_pass.fail_current_pass(resources, job)
    return len(jobs)


async def _keep_as_written(resources: Resources, job: Job, reason: str) -> None:
    await enrich.keep_as_written(resources, job, MemoryState.FAILED, reason)


_GIVE_UP: Mapping[Pipeline, Callable[[Resources, Job, str], Awaitable[None]]] = {
    Pipeline.ENRICHMENT: _keep_as_written,
    Pipeline.SUMMARY: summarize.give_up,
    Pipeline.SKILL_SUMMARY: summarize_skills.give_up,
    Pipeline.PROMOTION: promote.finish_unjudged,
    Pipeline.DOCUMENT: document_outcome.give_up,
}
