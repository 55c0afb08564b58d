"""Start a run that evaluates sessions when the first of a scope's sessions is idle."""

from shared.conversation.sessions import queries as session_queries
from shared.dreams.runs import evaluated_session_queries, start
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass
from shared.infra.transaction import Transaction
from shared.jobs import dream_schedule, removals
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.resources import Resources


async def start_or_reschedule(resources: Resources, job: Job) -> None:
    """Start a run if a session of the scope is idle, and make the scope due for its next session.

    Without a model nothing is started: the next turn makes the scope due again.
    """
    scope = dream_schedule.scope_from_record_id(job.tenant, job.record_id)
    async with resources.postgres.for_tenant(job.tenant) as tx:
        await removals.delay_erasures(tx, scope)
        # Completed first: a turn that is committed before is then seen below, one after it adds a job.
        if job.id not in await job_queries.complete(tx, [job]) or resources.language_model is None:
            return
        delay = await _start_if_idle(tx, resources, scope)
        if delay is not None:
            await dream_schedule.schedule_evaluation(tx, resources.settings, scope, delay)


async def _start_if_idle(tx: Transaction, resources: Resources, scope: Scope) -> float | None:
    """Start a run if a session is idle. Return in how many seconds to look again, or None."""
    settings, is_unevaluated = resources.settings, evaluated_session_queries.is_unevaluated()
    idle_seconds = settings.session_idle_seconds
    if await session_queries.list_idle(tx, scope, idle_seconds, 1, is_unevaluated):
        passes = (DreamPass.EVALUATE_SESSIONS,)
        run = await start.start_run(tx, settings, scope, dream_schedule.EVALUATION, passes)
        if run is None:  # another run over the scope has not ended
            return settings.dream_quiet_period
    return await session_queries.seconds_until_idle(tx, scope, idle_seconds, is_unevaluated)
