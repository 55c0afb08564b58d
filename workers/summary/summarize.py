"""Summarise the turns of sessions whose window is to move, and move it.

The model is called without an open transaction. Its summary is stored only if the lease of the job still
holds, and if no turn was edited or deleted meanwhile. A conversation that does not fit into one prompt is
summarised in parts: each is stored with the start of the window behind it, and the job is due again.
"""

import structlog

from shared.conversation.sessions import queries as session_queries
from shared.conversation.summary import due as due_summaries
from shared.conversation.summary import record
from shared.conversation.summary.due import DueSummary
from shared.conversation.summary.summary import SessionSummary
from shared.foundation import errors
from shared.foundation.stages import SUMMARIZE, ReasonCode
from shared.jobs import counters as fleet_counters
from shared.jobs import queries as job_queries
from shared.jobs import summary_jobs
from shared.jobs.job import Job
from shared.platform.resources import Resources
from workers.runtime import drain as job_drain
from workers.runtime.concurrent_drain import ConcurrentDrain, ReleaseSlot
from workers.runtime.drain import ClaimCounts
from workers.summary.write_summary import write_summary

log = structlog.get_logger()


async def summarize_pending(resources: Resources) -> ClaimCounts:
    """Summarise the sessions that are due, with at most `llm_concurrency` calls at once in this process."""
    return await _concurrent_drain.drain(resources, resources.settings.llm_concurrency)


async def summarize(resources: Resources, job: Job, release_slot: ReleaseSlot) -> None:
    """Summarise the session of a claimed job, and call `release_slot` once the model has replied."""
    model = resources.language_model
    due = await _find_due(resources, job)
    if due is None or model is None:
        return
    try:
        summary = await write_summary(resources, model, due)
    except errors.OverBudget as error:
        await job_drain.wait_for_budget(resources, job, error)
    except errors.Unavailable as error:
        await job_drain.retry_later(resources, SUMMARIZE, job, error, give_up)
    except errors.InvalidModelReply as error:
        await give_up(resources, job, str(error))
    else:
        release_slot()
        await _store(resources, job, due, summary)


_concurrent_drain = ConcurrentDrain(SUMMARIZE, summarize)


async def _find_due(resources: Resources, job: Job) -> DueSummary | None:
    """Return what is to be summarised; if there is nothing, or no model any more, complete the job.

    That happens under the lock of the session: whoever makes it due holds it, too.
    """
    settings = resources.settings
    async with resources.postgres.for_tenant(job.tenant) as tx:
        session = await session_queries.lock_by_id(tx, job.record_id, settings.window_ttl)
        due = None
        if session is not None and resources.language_model is not None:
            due = await due_summaries.find_due(tx, settings, session)
        if due is None:
            await job_queries.complete(tx, [job])
        return due


async def give_up(resources: Resources, job: Job, reason: str) -> None:
    """Complete the job without a summary. Its turns stay due: the next step of the window tries again.

    Do nothing if the lease of the job was lost.
    """
    async with resources.postgres.across_tenants() as tx:
        if job.id not in await job_queries.complete(tx, [job]):
            return
        await fleet_counters.increment(tx, "summaries", {"failed": 1})
    log.warning("summary_failed", session_id=job.record_id, reason=reason)


async def _store(resources: Resources, job: Job, due: DueSummary, summary: SessionSummary | None) -> None:
    """Store a summary and complete its job in one transaction; make the next one due if turns are left."""
    settings = resources.settings
    async with resources.postgres.for_tenant(job.tenant) as tx:
        session = await session_queries.lock_by_id(tx, job.record_id, settings.window_ttl)
        if session is None:
            await job_queries.complete(tx, [job])
            return
        if summary is None or not await record.is_current(tx, session, due):
            await job_queries.reschedule(
                tx, job, "its turns were changed", 0, reason_code=ReasonCode.NOT_READY, refund=False
            )
            return
        if job.id not in await job_queries.complete(tx, [job]):
            return  # another worker has the job now
        session = await record.record(tx, session, due, summary)
        if await due_summaries.find_due(tx, settings, session) is not None:
            await summary_jobs.schedule_summary(tx, session.id)
        await fleet_counters.increment(tx, "summaries", {"stored": 1})
