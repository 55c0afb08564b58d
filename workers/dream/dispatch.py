"""Send wake-ups for the next pass of runs in progress."""

from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs.dream_run import Run
from shared.foundation.stages import DREAM_PASS
from shared.jobs import backlog
from shared.platform.resources import Resources


async def dispatch_next_passes(resources: Resources) -> int:
    """Ask for the task of each run's next pass, by its name and with arguments that a person can read."""
    settings = resources.settings
    async with resources.postgres.across_tenants() as connection:
        due = await backlog.list_due(connection, DREAM_PASS, settings.job_max_attempts, DREAM_PASS.batch_size)
    for claim in due:
        async with resources.postgres.for_tenant(claim.tenant) as connection:
            run = await dream_queries.get(connection, claim.tenant, claim.record_id)
        dispatch_next_pass(resources, run)
    return len(due)


def dispatch_next_pass(resources: Resources, run: Run | None) -> None:
    """Ring for the pass that a run waits for."""
    if run is not None and run.next_pass is not None:
        about = {"tenant": run.tenant, "agent": run.agent_id, "user": run.user_id, "run": run.id}
        resources.publisher.send(f"dream.{run.next_pass.name}", **about)
