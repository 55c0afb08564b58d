"""Write the summaries of skills that came without one; until then the beginning of the content stands in.

The model is called without an open transaction. Its summary is stored only if the lease of the job still
holds, and if the skill is still in the version that was read: nobody's words are ever replaced. Where the
model has no usable answer, the beginning of the content stays until the skill changes.
"""

import structlog

from shared.dreams.skill_proposals import queries as proposal_queries
from shared.foundation import errors
from shared.foundation.stages import SUMMARIZE_SKILL
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.jobs import counters as fleet_counters
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.skills import queries as skill_queries
from shared.memory.skills import summary_queries, write
from shared.memory.skills.skill import Skill
from shared.platform.resources import Resources
from workers.runtime import drain as job_drain
from workers.runtime.concurrent_drain import ConcurrentDrain, ReleaseSlot
from workers.runtime.drain import ClaimCounts
from workers.summary.skill_summary import open_summariser

log = structlog.get_logger()
_SLOTS = 1
"""Calls at once, beside those of conversations: skills are rare, and a model bears only so many calls."""


async def summarize_skills(resources: Resources) -> ClaimCounts:
    """Summarise the skills that are due, one after the other in this process."""
    return await _concurrent_drain.drain(resources, _SLOTS)


async def summarize_skill(resources: Resources, job: Job, release_slot: ReleaseSlot) -> None:
    """Summarise the skill of a claimed job, and call `release_slot` once the model has replied."""
    skill, model = await _find_due(resources, job), resources.language_model
    if skill is None or model is None:
        return
    try:
        summary = await (await open_summariser(resources, model, skill)).write()
    except errors.OverBudget as error:
        await job_drain.wait_for_budget(resources, job, error)
    except errors.Unavailable as error:
        await job_drain.retry_later(resources, SUMMARIZE_SKILL, job, error, give_up)
    except errors.InvalidModelReply as error:
        await give_up(resources, job, str(error))
    else:
        release_slot()
        await _store(resources, job, skill, summary)


_concurrent_drain = ConcurrentDrain(SUMMARIZE_SKILL, summarize_skill)


async def _find_due(resources: Resources, job: Job) -> Skill | None:
    """Return the skill to summarise; if there is none, or no model any more, complete the job."""
    async with resources.postgres.for_tenant(job.tenant) as tx:
        skill = await summary_queries.find(tx, job.record_id)
        if skill is None or skill.version != job.version or resources.language_model is None:
            await job_queries.complete(tx, [job])
            return None
        return skill


async def give_up(resources: Resources, job: Job, reason: str) -> None:
    """Complete the job without a summary, and note that for this version nobody is to be asked again."""
    async with resources.postgres.for_tenant(job.tenant) as tx:
        await summary_queries.note_unsummarised(tx, job.record_id, job.version)
        if job.id not in await job_queries.complete(tx, [job]):
            return  # the skill was written anew, or another worker has the job now
        await fleet_counters.increment(tx, "skill_summaries", {"failed": 1})
    log.warning("skill_summary_failed", skill_id=job.record_id, reason=reason)


@repeated_after_deadlock
async def _store(resources: Resources, job: Job, read_skill: Skill, summary: str) -> None:
    """Give the skill its summary and complete the job, unless either has changed."""
    async with resources.transaction(job.tenant) as tx:
        await skill_queries.lock_scope(tx, read_skill.scope)
        skill = await skill_queries.lock(tx, read_skill.scope, read_skill.name)
        if job.id not in await job_queries.complete(tx, [job]):
            return  # the skill was written anew, or another worker has the job now
        if skill is None or (skill.id, skill.version) != (read_skill.id, read_skill.version):
            return
        written = await write.give_summary(tx, resources.settings, skill, summary)
        await proposal_queries.carry_over(tx, skill.id, skill.version, written.version)
        await write.index(tx, resources.settings, [written])
        await fleet_counters.increment(tx, "skill_summaries", {"stored": 1})
