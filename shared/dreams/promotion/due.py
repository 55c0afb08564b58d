"""Promotions that are due: load what a model is to judge, and finish them with what it said."""

from dataclasses import dataclass

from shared.conversation.scratchpad import queries as scratchpad_queries
from shared.conversation.scratchpad.snippet import Snippet
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.dreams.promotion import queries
from shared.dreams.promotion.carry_out import carry_out, lock_target
from shared.dreams.promotion.examine import Judgements
from shared.dreams.promotion.promotion import Promotion
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.resources import Resources


@dataclass(frozen=True, slots=True)
class DuePromotion:
    """A promotion of a session, and the snippets that are to be examined for it."""

    promotion: Promotion
    session: Session
    snippets: list[Snippet]


async def load(resources: Resources, job: Job) -> DuePromotion | None:
    """Return what the promotion of a job is about, or None if its session is gone."""
    async with resources.postgres.for_tenant(job.tenant) as tx:
        return await _lock(tx, resources, job)


async def finish(resources: Resources, job: Job, judgements: Judgements | None = None) -> None:
    """Examine what is in the scratchpad now, and end the promotion and its job in one transaction.

    Do nothing if the claim on the job is not valid any more, or if somebody else has ended it.
    """
    async with resources.transaction(job.tenant) as tx:
        due = await _lock(tx, resources, job)
        if job.id not in await job_queries.complete(tx, [job]) or due is None:
            return
        judgements = judgements or Judgements()
        await carry_out(tx, resources.settings, due.session, due.promotion, due.snippets, judgements)


async def _lock(tx: Transaction, resources: Resources, job: Job) -> DuePromotion | None:
    """Lock what a promotion writes, and return it with the snippets that it examines."""
    promotion = await queries.find(tx, job.record_id)
    if promotion is None:
        return None
    await lock_target(tx, promotion.target)
    session = await session_queries.lock_by_id(tx, promotion.session_id, resources.settings.window_ttl)
    if session is None:
        return None
    snippets = await scratchpad_queries.list_snippets(tx, session.id)
    return DuePromotion(promotion, session, [snippet for snippet in snippets if snippet.is_to_examine])
