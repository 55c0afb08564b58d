"""Send the tasks of the next passes of running dream runs."""

from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs.dream_run import Run
from shared.foundation.stages import DREAM_PASS, MINE_PASS, PASS_STAGES, task_of_pass
from shared.infra.transaction import Transaction
from shared.jobs import model_guard, sent_tasks
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.resources import Resources
from shared.platform.spend.charge import Purpose
from shared.platform.spend.metered_calls import DREAM

_MAX_RESUMED = 1000
_PAUSES = {DREAM_PASS: DREAM, MINE_PASS: Purpose.MINING}
"""What is paused while the model of a stage's passes refuses every request."""


async def resume_refused_passes(resources: Resources) -> None:
    """Make passes due again whose model refused every request: all when it is asked again, else its probe.

    They wait for the next probe. The pause may end before, by an answer or by other settings.
    """
    model = resources.language_model
    identity = None if model is None else model.identity
    for stage, pause in _PAUSES.items():
        async with resources.postgres.across_tenants() as tx:
            limit = await model_guard.claim_limit(tx, pause, identity, _MAX_RESUMED)
            if limit:
                await job_queries.run_refused_now(tx, stage, limit)


async def dispatch_next_passes(resources: Resources) -> int:
    """Send the tasks of the passes whose turn it is, each once. Return their number.

    Called when a run starts, when a pass begins or ends, and by the sweep, so a free place is soon used. The
    place of a job that has nothing to do goes to another at once.
    """
    sent_count = 0
    while True:
        jobs = await _choose_jobs(resources)
        is_sent = [await _send_task(resources, job) for job in jobs]
        sent_count += sum(is_sent)
        if all(is_sent):
            return sent_count


async def _choose_jobs(resources: Resources) -> list[Job]:
    attempts = resources.settings.job_max_attempts
    async with resources.postgres.across_tenants() as tx:
        return [job for stage in PASS_STAGES for job in await sent_tasks.choose_jobs(tx, stage, attempts)]


async def _send_task(resources: Resources, job: Job) -> bool:
    """Send the task of a job, or end the job if there is nothing to do. Return whether it was sent."""
    async with resources.postgres.for_tenant(job.tenant) as tx:
        run = await get_run_or_end(tx, job)
    if run is None or run.next_pass is None:
        return False
    # Only tenant and run are used by the task; agent and user are there to be read in Flower.
    arguments = {"tenant": run.tenant, "agent": run.agent_id, "user": run.user_id, "run": run.id}
    resources.publisher.send(task_of_pass(run.next_pass.name), **arguments)
    return True


async def get_run_or_end(tx: Transaction, job: Job) -> Run | None:
    """Return the run of a job. If it is gone, or no pass of it is left, complete the job and return None."""
    run = await dream_queries.get(tx, job.record_id)
    if run is not None and run.next_pass is not None:
        return run
    await job_queries.complete(tx, [job])
    return None
