"""Send wake-ups for the next pass of runs in progress."""

from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs.dream_run import Run
from shared.foundation.stages import DREAM_PASS
from shared.jobs import backlog
from shared.platform.resources import Resources


async def go_on(resources: Resources) -> int:
    """Ask for the task of each run's next pass, by its name and with arguments that a person can read."""
    settings = resources.settings
    async with resources.postgres.fleet() as connection:
        due = await backlog.due_rows(connection, DREAM_PASS, settings.work_attempts, DREAM_PASS.batch)
    for claim in due:
        async with resources.postgres.tenant(claim.tenant) as connection:
            run = await dream_queries.get(connection, claim.tenant, claim.ref)
        call_next(resources, run)
    return len(due)


def call_next(resources: Resources, run: Run | None) -> None:
    """Ring for the pass that a run waits for."""
    if run is not None and run.next_pass is not None:
        about = {"tenant": run.tenant, "agent": run.agent_id, "user": run.user_id, "run": run.id}
        resources.bell.call(f"dream.{run.next_pass.name}", **about)
