"""Send wake-ups for the next pass of running dream runs."""

from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs.dream_run import Run
from shared.foundation.stages import DREAM_PASS
from shared.jobs import backlog
from shared.platform.resources import Resources


async def dispatch_next_passes(resources: Resources) -> int:
    """Send the task of the next pass of each run whose job is due. Return the number of due jobs."""
    settings = resources.settings
    async with resources.postgres.across_tenants() as connection:
        due_jobs = await backlog.list_due(
            connection, DREAM_PASS, settings.job_max_attempts, DREAM_PASS.batch_size
        )
    for job in due_jobs:
        async with resources.postgres.for_tenant(job.tenant) as connection:
            run = await dream_queries.get(connection, job.tenant, job.record_id)
        dispatch_next_pass(resources, run)
    return len(due_jobs)


def dispatch_next_pass(resources: Resources, run: Run | None) -> None:
    """Send the task of the pass that a run waits for, if it waits for one."""
    if run is not None and run.next_pass is not None:
        # Only tenant and run are used by the task; agent and user are there to be read in Flower.
        arguments = {"tenant": run.tenant, "agent": run.agent_id, "user": run.user_id, "run": run.id}
        resources.publisher.send(f"dream.{run.next_pass.name}", **arguments)
