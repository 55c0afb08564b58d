"""Finish promotions that reports began: let the model judge the snippets, then store what is worth keeping.

The model is asked without an open transaction. What it says is used only if the claim on the job is still
valid; the other criteria are examined in the transaction that ends the promotion.
"""

from shared.dreams.promotion import due
from shared.dreams.promotion.due import DuePromotion
from shared.dreams.promotion.examine import Judgements
from shared.foundation import errors
from shared.foundation.stages import PROMOTE
from shared.infra.language_model import LanguageModel
from shared.jobs.job import Job
from shared.platform.directives import resolve
from shared.platform.resources import Resources
from shared.platform.spend.charge import Payer, Purpose
from workers.enrichment.salience import Judge
from workers.runtime import drain as job_drain
from workers.runtime.concurrent_drain import ConcurrentDrain, ReleaseSlot
from workers.runtime.drain import ClaimCounts

_SLOTS = 1
"""Calls at once, beside those of enrichments: reports are rare, and a model bears only so many calls."""


async def promote_pending(resources: Resources) -> ClaimCounts:
    """Finish the promotions that are due, one after the other in this process."""
    return await _concurrent_drain.drain(resources, _SLOTS)


async def promote(resources: Resources, job: Job, release_slot: ReleaseSlot) -> None:
    """Finish the promotion of a claimed job, and call `release_slot` once the model has replied."""
    promotion, model = await due.load(resources, job), resources.language_model
    if promotion is None or model is None or not promotion.snippets:
        await due.finish(resources, job)
        return
    try:
        judgements = await _judge(resources, model, promotion)
    except errors.OverBudget as error:
        await finish_unjudged(resources, job, str(error))
    except errors.Unavailable as error:
        await job_drain.retry_later(resources, PROMOTE, job, error, finish_unjudged)
    else:
        release_slot()
        await due.finish(resources, job, judgements)


_concurrent_drain = ConcurrentDrain(PROMOTE, promote)


async def _judge(resources: Resources, model: LanguageModel, promotion: DuePromotion) -> Judgements:
    session = promotion.session
    async with resources.postgres.for_tenant(session.tenant) as tx:
        directive = await resolve.resolve(tx, resources.settings, "promotion")
    payer = Payer(session.tenant, session.agent_id, session.user_id, Purpose.PROMOTION)
    judge = Judge(resources, model, payer, directive.text)
    return Judgements(await judge.judge(promotion.snippets), "not judged: it was written meanwhile")


async def finish_unjudged(resources: Resources, job: Job, reason: str) -> None:
    """Finish a promotion by the other criteria, because no model could judge its snippets."""
    await due.finish(resources, job, Judgements(otherwise=f"not judged: {reason}"))
