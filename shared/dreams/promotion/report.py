"""Save a report of a session, which promotes what its scratchpad has learnt.

A report is an observation of the kind `report`: it belongs to its session, is found by search, exported and
deleted with it, as all observations are. Its title is in the metadata.

The transaction that stores it also writes down that the snippets are to be examined, so a report that was
acknowledged is never without its promotion. Where a language model judges them, a worker does that. Without
one, the request does it right after its commit; if it can't, a worker does it a few seconds later.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from shared.conversation.observations import add
from shared.conversation.observations.observation import Observation, ObservationDraft, ObservationKind
from shared.conversation.observations.record_type import OBSERVATION
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.dreams.promotion import due, queries
from shared.dreams.promotion.promote import target_of
from shared.dreams.promotion.promotion import Promotion, PromotionTrigger
from shared.foundation import stages, validation
from shared.foundation.origin import Trust
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.jobs import queries as job_queries
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction
from shared.search.index.writer import WRITE_THROUGH_SECONDS

MAX_TITLE = 256
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReportDraft:
    """A report that is to be saved."""

    title: str
    content: str
    trust: Trust | None = None

    def observation(self) -> ObservationDraft:
        """Return the report as an observation. Raise errors.Invalid if it breaks a rule."""
        title = validation.check_single_line(self.title, "title", MAX_TITLE)
        draft = ObservationDraft(kind=ObservationKind.REPORT, content=self.content, metadata={"title": title})
        return draft.validated()


async def save_report(
    resources: Resources,
    caller: Caller,
    session_id: str,
    draft: ReportDraft,
    key: IdempotencyKey | None = None,
) -> JsonObject:
    """Save a report, and return it as JSON with the id of the promotion that it began.

    Raises errors.NotFound for a session that the caller may not see.
    """
    observation_draft = draft.observation()
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            tx.index_repeated(RecordKind.OBSERVATION, [request.stored["id"]], OBSERVATION.read_documents)
            return dict(request.stored)
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        target = target_of(caller, session, None)
        report = await add.insert(tx, session, observation_draft, caller.origin.lowered(draft.trust))
        promotion = await queries.add(
            tx, session, caller.key_id, PromotionTrigger.REPORT, target, report_id=report.id
        )
        await _begin(tx, resources, promotion)
        response = _to_json(session, report, promotion)
        await request.store(response, record_ids=[session.id], user_id=session.user_id)
        return response


def _to_json(session: Session, report: Observation, promotion: Promotion) -> JsonObject:
    fields = report.model_dump(mode="json", include={"id", "content", "created_at"})
    title = report.metadata["title"]
    return {"title": title, "session_id": session.id, "promotion_id": promotion.id, **fields}


async def _begin(tx: RecordTransaction, resources: Resources, promotion: Promotion) -> None:
    """Write down that the snippets are to be examined: by a worker, or by this request after its commit."""
    asks_model = resources.language_model is not None
    delay = 0 if asks_model else WRITE_THROUGH_SECONDS
    kind, stage = RecordKind.PROMOTION, stages.PROMOTE
    await job_queries.enqueue(tx, promotion.tenant, kind, stage, {promotion.id: 1}, delay=delay)
    if asks_model:
        tx.wake(stage)
    else:
        job = await job_queries.get_unclaimed(tx, kind, promotion.id, stage)
        tx.after_commit(partial(due.finish, resources, job))  # or a worker does it, if Postgres is away
