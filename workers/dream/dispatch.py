"""Send the tasks of the next passes of running dream runs."""

from shared.dreams.runs import queries as dream_queries
from shared.jobs import sent_tasks
from shared.platform.resources import Resources


async def dispatch_next_passes(resources: Resources) -> int:
    """Send the tasks of the passes whose turn it is, each once. Return their number.

    Called when a run starts, when a pass begins or ends, and by the sweep, so a free place is soon used.
    """
    async with resources.postgres.across_tenants() as connection:
        jobs = await sent_tasks.choose_jobs(connection, resources.settings.job_max_attempts)
    for job in jobs:
        async with resources.postgres.for_tenant(job.tenant) as connection:
            run = await dream_queries.get(connection, job.tenant, job.record_id)
        if run is not None and run.next_pass is not None:
            # Only tenant and run are used by the task; agent and user are there to be read in Flower.
            arguments = {"tenant": run.tenant, "agent": run.agent_id, "user": run.user_id, "run": run.id}
            resources.publisher.send(f"dream.{run.next_pass.name}", **arguments)
    return len(jobs)
