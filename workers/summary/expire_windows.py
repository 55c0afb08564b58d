"""Make a summary due of all turns of a session whose window has emptied, because it is idle.

Whoever goes on with the session then begins with the summary.
"""

from collections.abc import Sequence

from shared.conversation.sessions import queries as session_queries
from shared.jobs import queries as job_queries
from shared.jobs import summary_jobs
from shared.jobs.job import Job
from shared.platform.resources import Resources


async def expire_windows(resources: Resources, jobs: Sequence[Job]) -> None:
    """Make summaries of the idle sessions among these due, and look at the others again later."""
    for job in jobs:
        await _expire_window(resources, job)


async def _expire_window(resources: Resources, job: Job) -> None:
    tenant, ttl = job.tenant, resources.settings.window_ttl
    async with resources.postgres.for_tenant(tenant) as tx:
        session = await session_queries.lock_by_id(tx, job.record_id, ttl)
        if job.id not in await job_queries.complete(tx, [job]):
            return
        if session is None or session.turn_count <= 1:  # one turn is no conversation
            return
        if session.window_expired:
            await summary_jobs.schedule_summary(tx, session.id)
        else:
            delay = ttl + 1 - await session_queries.seconds_since_turn(tx, session)
            await summary_jobs.schedule_window_expiry(tx, session.id, delay)
