"""Send the tasks of the next passes of running dream runs."""

from shared.dreams.runs import queries as dream_queries
from shared.foundation.stages import DREAM_PASS, MINE_PASS, PASS_STAGES, task_of_pass
from shared.jobs import model_guard, sent_tasks
from shared.jobs import queries as job_queries
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
        async with resources.postgres.across_tenants() as connection:
            limit = await model_guard.claim_limit(connection, pause, identity, _MAX_RESUMED)
            if limit:
                await job_queries.run_refused_now(connection, stage, limit)


async def dispatch_next_passes(resources: Resources) -> int:
    """Send the tasks of the passes whose turn it is, each once. Return their number.

    Called when a run starts, when a pass begins or ends, and by the sweep, so a free place is soon used.
    """
    async with resources.postgres.across_tenants() as connection:
        attempts = resources.settings.job_max_attempts
        jobs = [
            job for stage in PASS_STAGES for job in await sent_tasks.choose_jobs(connection, stage, attempts)
        ]
    for job in jobs:
        async with resources.postgres.for_tenant(job.tenant) as connection:
            run = await dream_queries.get(connection, job.tenant, job.record_id)
        if run is not None and run.next_pass is not None:
            # Only tenant and run are used by the task; agent and user are there to be read in Flower.
            arguments = {"tenant": run.tenant, "agent": run.agent_id, "user": run.user_id, "run": run.id}
            resources.publisher.send(task_of_pass(run.next_pass.name), **arguments)
    return len(jobs)
