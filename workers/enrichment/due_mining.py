"""Start runs that mine facts over scopes that are at rest, or that have enough turns."""

from collections.abc import Sequence

from shared.conversation.sessions import queries as session_queries
from shared.dreams.runs import start, unread_turn_queries
from shared.foundation.scope import Scope
from shared.foundation.stages import MINE_START, DreamPass
from shared.infra.transaction import Transaction
from shared.jobs import dream_schedule, mining_schedule, removals
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.resources import Resources
from workers.passes import dispatch
from workers.runtime import drain as job_drain
from workers.runtime.drain import ClaimCounts

_OTHER_RUN_SECONDS = 5.0
"""After this time a scope is looked at again that another run is over."""


async def start_due_mining(resources: Resources) -> ClaimCounts:
    """Start a run over each scope that is due. Return how many jobs were claimed, by tenant."""
    return await job_drain.drain(resources, MINE_START, _start_all)


async def _start_all(resources: Resources, jobs: Sequence[Job]) -> None:
    for job in jobs:
        await start_or_reschedule(resources, job)
    await dispatch.dispatch_next_passes(resources)


async def start_or_reschedule(resources: Resources, job: Job) -> None:
    """Start a run if the scope of a job is to be mined now, or make it due for when it can be.

    Without a model, or if this pass is switched off, nothing is started: a later turn makes the scope due.
    """
    scope = dream_schedule.scope_from_record_id(job.tenant, job.record_id)
    is_off = DreamPass.MINE_FACTS in resources.settings.dream_disabled_passes
    async with resources.postgres.for_tenant(job.tenant) as tx:
        await removals.delay_erasures(tx, scope)
        # Completed first: a turn that is committed before is then seen below, one after it adds a job.
        is_completed = job.id in await job_queries.complete(tx, [job])
        if is_completed and resources.language_model is not None and not is_off:
            await _start_if_due(tx, resources, scope)


async def _start_if_due(tx: Transaction, resources: Resources, scope: Scope) -> None:
    settings, name = resources.settings, DreamPass.MINE_FACTS
    is_mineable = unread_turn_queries.is_mineable()
    count = await unread_turn_queries.count_unread(tx, scope, name, settings.mine_turns, is_mineable)
    if count == 0:
        return
    elapsed = await session_queries.seconds_since_last_turn(tx, scope)
    rest_seconds = settings.mine_rest_seconds - (elapsed or 0.0)
    if count < settings.mine_turns and rest_seconds > 0:
        await mining_schedule.schedule(tx, scope, rest_seconds, count)
        return
    run = await start.start_run(tx, settings, scope, dream_schedule.MINING, (name,))
    if run is None:
        await mining_schedule.schedule(tx, scope, _OTHER_RUN_SECONDS, count)
